#include "parsimony/pruners/elements/sparsegpt.h"

#include <Eigen/Cholesky>
#include <algorithm>
#include <utility>

#include "parsimony/pruners/elements/masks.h"
#include "parsimony/pruners/settings.h"

namespace parsimony::elements {

namespace {

/// Upper U with H⁻¹ = Uᵀ U. With J that reverses the order of columns and J H J = L Lᵀ, it is
/// U = J L⁻¹ J: no inverse of H is formed.
Matrix inverse_factor(const Eigen::MatrixXd& hessian) {
  const Eigen::LLT<Eigen::MatrixXd> reversed(hessian.reverse());
  const Eigen::MatrixXd identity = Eigen::MatrixXd::Identity(hessian.rows(), hessian.cols());
  return reversed.matrixL().solve(identity).reverse();
}

class SparseGpt {
 public:
  SparseGpt(const Matrix& weights, const Eigen::MatrixXd& second, const SparseGptOptions& options)
      : options_(options), weights_(weights), keep_(Keep::Ones(weights.rows(), weights.cols())) {
    Eigen::MatrixXd hessian = second;
    const double damping = options.damping * hessian.diagonal().mean();
    for (int64_t j = 0; j < hessian.cols(); ++j) {
      if (hessian(j, j) == 0) {
        hessian(j, j) = 1;
        weights_.col(j).setZero();
      }
      hessian(j, j) += damping;
    }
    factor_ = inverse_factor(hessian);
  }

  SparseGptResult run() {
    for (int64_t begin = 0; begin < weights_.cols();) {
      const int64_t end = block_end(begin);
      if (!options_.pattern.exists()) choose_in_block(begin, end);
      const Matrix errors = prune_block(begin, end);
      const int64_t rest = weights_.cols() - end;
      if (rest > 0) {
        weights_.rightCols(rest).noalias() -= errors * factor_.block(begin, end, end - begin, rest);
      }
      begin = end;
    }
    return {std::move(weights_), std::move(keep_)};
  }

 private:
  /// A group of the pattern is never divided.
  int64_t block_end(int64_t begin) const {
    const int64_t end = std::min<int64_t>(begin + options_.block, weights_.cols());
    return options_.pattern.exists() ? options_.runs.group_end(end - 1, options_.pattern.m) : end;
  }

  /// What it costs to lose each element of columns [begin, end), but for a factor of ½.
  Matrix losses(int64_t begin, int64_t end) const {
    const auto scale = factor_.diagonal().segment(begin, end - begin).transpose().array();
    const Matrix ratio = weights_.middleCols(begin, end - begin).array().rowwise() / scale;
    return ratio.cwiseAbs2();
  }

  void choose_in_block(int64_t begin, int64_t end) {
    const int64_t rows = weights_.rows();
    const int64_t count =
        floor_of(options_.ratio, rows * end) - floor_of(options_.ratio, rows * begin);
    keep_.middleCols(begin, end - begin) = keep_all_but(losses(begin, end), count);
  }

  void choose_in_group(int64_t begin) {
    const int64_t end = options_.runs.group_end(begin, options_.pattern.m);
    keep_.middleCols(begin, end - begin) =
        keep_n_of_m(losses(begin, end), options_.pattern, Runs{end - begin});
  }

  bool begins_group(int64_t column) const {
    return options_.pattern.exists() &&
           (column == 0 || options_.runs.group_end(column - 1, options_.pattern.m) == column);
  }

  /// Prunes columns [begin, end) and updates them; returns the errors for which later columns
  /// compensate, [rows, end - begin].
  Matrix prune_block(int64_t begin, int64_t end) {
    Matrix errors = Matrix::Zero(weights_.rows(), end - begin);
    for (int64_t j = begin; j < end; ++j) {
      if (begins_group(j)) choose_in_group(j);
      const auto goes = (keep_.col(j) == 0).cast<double>();
      const Eigen::VectorXd error = weights_.col(j).array() * goes / factor_(j, j);
      errors.col(j - begin) = error;
      weights_.middleCols(j, end - j).noalias() -= error * factor_.row(j).segment(j, end - j);
      weights_.col(j) = (keep_.col(j) == 0).select(0.0, weights_.col(j).array()).matrix();
    }
    return errors;
  }

  const SparseGptOptions& options_;
  Matrix weights_;
  Keep keep_;
  Matrix factor_;
};

}  // namespace

SparseGptResult sparsegpt(const Matrix& weights, const Eigen::MatrixXd& second,
                          const SparseGptOptions& options) {
  return SparseGpt(weights, second, options).run();
}

}  // namespace parsimony::elements
