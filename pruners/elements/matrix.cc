#include "parsimony/pruners/elements/matrix.h"

#include <Eigen/Cholesky>
#include <algorithm>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

#include "parsimony/pruners/settings.h"

namespace parsimony::elements {

namespace {

/// Places of the `count` lowest scores; of equal ones the first.
std::vector<size_t> lowest(std::span<const double> scores, int64_t count) {
  std::vector<size_t> places(scores.size());
  std::iota(places.begin(), places.end(), size_t{0});
  const auto lower = [&](size_t a, size_t b) {
    return scores[a] < scores[b] || (scores[a] == scores[b] && a < b);
  };
  const auto end = places.begin() + count;
  if (end != places.end()) std::nth_element(places.begin(), end, places.end(), lower);
  places.erase(end, places.end());
  return places;
}

/// Keeps the n highest of columns [begin, end) of one row; of equal ones the left.
void keep_highest(const Matrix& scores, int64_t row, int64_t begin, int64_t end, int n,
                  Keep& keep) {
  std::vector<int64_t> order(end - begin);
  std::iota(order.begin(), order.end(), begin);
  std::ranges::stable_sort(order,
                           [&](int64_t a, int64_t b) { return scores(row, a) > scores(row, b); });
  for (size_t i = n; i < order.size(); ++i) keep(row, order[i]) = 0;
}

struct Block {
  int64_t row = 0;
  int64_t column = 0;
  int64_t rows = 0;
  int64_t columns = 0;
};

std::vector<Block> blocks_of(const Matrix& weights, int block_rows, int block_columns, Runs runs) {
  std::vector<Block> blocks;
  for (int64_t r = 0; r < weights.rows(); r += block_rows) {
    const int64_t rows = std::min<int64_t>(block_rows, weights.rows() - r);
    for (int64_t c = 0; c < weights.cols();) {
      const int64_t end = runs.group_end(c, block_columns);
      blocks.push_back({r, c, rows, end - c});
      c = end;
    }
  }
  return blocks;
}

}  // namespace

Keep keep_n_of_m(const Matrix& scores, NmPattern pattern, Runs runs) {
  Keep keep = Keep::Ones(scores.rows(), scores.cols());
  for (int64_t r = 0; r < scores.rows(); ++r) {
    for (int64_t c = 0; c < scores.cols();) {
      const int64_t end = runs.group_end(c, pattern.m);
      if (end - c > pattern.n) keep_highest(scores, r, c, end, pattern.n, keep);
      c = end;
    }
  }
  return keep;
}

Keep keep_all_but(const Matrix& scores, int64_t count) {
  Keep keep = Keep::Ones(scores.rows(), scores.cols());
  const std::span<const double> all(scores.data(), scores.size());
  for (size_t i : lowest(all, count)) keep.data()[i] = 0;
  return keep;
}

Keep keep_of_rows(const Matrix& scores, double ratio) {
  Keep keep = Keep::Ones(scores.rows(), scores.cols());
  const int64_t count = floor_of(ratio, scores.cols());
  for (int64_t r = 0; r < scores.rows(); ++r) {
    const std::span<const double> row(scores.data() + r * scores.cols(), scores.cols());
    for (size_t c : lowest(row, count)) keep(r, static_cast<int64_t>(c)) = 0;
  }
  return keep;
}

Keep keep_blocks(const Matrix& weights, int block_rows, int block_columns, double ratio,
                 Runs runs) {
  const std::vector<Block> blocks = blocks_of(weights, block_rows, block_columns, runs);
  std::vector<double> scores;
  scores.reserve(blocks.size());
  for (const Block& b : blocks) {
    scores.push_back(weights.block(b.row, b.column, b.rows, b.columns).squaredNorm() /
                     static_cast<double>(b.rows * b.columns));
  }
  Keep keep = Keep::Ones(weights.rows(), weights.cols());
  for (size_t i : lowest(scores, floor_of(ratio, static_cast<int64_t>(blocks.size())))) {
    const Block& b = blocks[i];
    keep.block(b.row, b.column, b.rows, b.columns).setZero();
  }
  return keep;
}

Matrix wanda_scores(const Matrix& weights, const Eigen::MatrixXd& second) {
  const Eigen::RowVectorXd norms = second.diagonal().cwiseMax(0.0).cwiseSqrt().transpose();
  return weights.cwiseAbs().array().rowwise() * norms.array();
}

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

  /// Returns the cost of losing each element of columns [begin, end), but for a factor of ½.
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
