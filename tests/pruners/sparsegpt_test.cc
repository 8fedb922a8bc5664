// SparseGPT against the surgeon's step written out: for every element that goes, the inverse of
// the Hessian of the columns that may still change, by a dense solve.
#include <gtest/gtest.h>

#include <Eigen/LU>
#include <algorithm>
#include <random>
#include <tuple>
#include <vector>

#include "parsimony/pruners/elements/matrix.h"

namespace parsimony::elements {
namespace {

Matrix random_matrix(int64_t rows, int64_t columns, unsigned seed) {
  std::mt19937 engine(seed);
  std::normal_distribution<double> normal;
  Matrix matrix(rows, columns);
  for (int64_t i = 0; i < matrix.size(); ++i) matrix.data()[i] = normal(engine);
  return matrix;
}

/// Inputs that depend on each other, [columns, samples].
Eigen::MatrixXd inputs(int64_t columns, unsigned seed) {
  const Matrix mixing = random_matrix(columns, columns, seed);
  return mixing * random_matrix(columns, 3 * columns, seed + 1);
}

class Surgeon {
 public:
  Surgeon(Matrix weights, const Eigen::MatrixXd& second, const SparseGptOptions& options)
      : options_(options), result_{std::move(weights), {}}, hessian_(second) {
    result_.keep = Keep::Ones(result_.weights.rows(), result_.weights.cols());
    hessian_.diagonal().array() += options.damping * second.diagonal().mean();
  }

  SparseGptResult run() {
    const int64_t columns = result_.weights.cols();
    const int64_t step = options_.pattern.exists() ? options_.pattern.m : options_.block;
    for (int64_t j = 0; j < columns; ++j) {
      if (j % step == 0) choose(j, std::min(j + step, columns));
      remove(j);
    }
    return std::move(result_);
  }

 private:
  Eigen::MatrixXd inverse_from(int64_t j) const {
    const int64_t left = hessian_.cols() - j;
    const Eigen::MatrixXd free = hessian_.bottomRightCorner(left, left);
    return free.fullPivLu().solve(Eigen::MatrixXd::Identity(left, left));
  }

  void choose(int64_t begin, int64_t end) {
    using Candidate = std::tuple<double, int64_t, int64_t>;
    std::vector<Candidate> all;
    for (int64_t j = begin; j < end; ++j) {
      const double scale = inverse_from(j)(0, 0);
      for (int64_t r = 0; r < result_.weights.rows(); ++r) {
        const double w = result_.weights(r, j);
        all.emplace_back(w * w / scale, r, j);
      }
    }
    std::sort(all.begin(), all.end());
    if (options_.pattern.exists()) {
      for (int64_t r = 0; r < result_.weights.rows(); ++r) {
        take(all, end - begin - options_.pattern.n, r);
      }
    } else {
      // The share of all columns up to the block's end, less what went before it.
      take(all, share(end) - share(begin), -1);
    }
  }

  int64_t share(int64_t columns) const {
    const auto elements = static_cast<double>(result_.weights.rows() * columns);
    return static_cast<int64_t>(options_.ratio * elements + 1e-9);
  }

  template <typename Candidates>
  void take(const Candidates& all, int64_t count, int64_t row) {
    for (const auto& [loss, r, j] : all) {
      if (count <= 0) return;
      if (row >= 0 && r != row) continue;
      result_.keep(r, j) = 0;
      --count;
    }
  }

  void remove(int64_t j) {
    const Eigen::MatrixXd inverse = inverse_from(j);
    for (int64_t r = 0; r < result_.weights.rows(); ++r) {
      if (result_.keep(r, j) != 0) continue;
      const double factor = result_.weights(r, j) / inverse(0, 0);
      for (int64_t k = 0; k < inverse.cols(); ++k) {
        result_.weights(r, j + k) -= factor * inverse(0, k);
      }
      result_.weights(r, j) = 0;
    }
  }

  const SparseGptOptions& options_;
  SparseGptResult result_;
  Eigen::MatrixXd hessian_;
};

void expect_equal(const SparseGptResult& found, const SparseGptResult& expected) {
  EXPECT_TRUE((found.keep == expected.keep).all());
  EXPECT_LT((found.weights - expected.weights).cwiseAbs().maxCoeff(), 1e-5);
  EXPECT_GT((found.weights.array() == 0).count(), 0);
}

TEST(SparseGpt, EqualsTheSurgeonsSteps) {
  for (const int block : {4, 7, 128}) {
    for (const double ratio : {0.25, 0.5, 0.8}) {
      const Matrix weights = random_matrix(6, 20, 1);
      const Eigen::MatrixXd x = inputs(20, 7);
      const Eigen::MatrixXd second = x * x.transpose();
      const SparseGptOptions options{.ratio = ratio, .block = block};
      expect_equal(sparsegpt(weights, second, options), Surgeon(weights, second, options).run());
    }
  }
}

TEST(SparseGpt, WithAPatternEqualsTheSurgeonsSteps) {
  for (const NmPattern pattern : {NmPattern{2, 4}, NmPattern{1, 5}, NmPattern{3, 4}}) {
    const Matrix weights = random_matrix(5, 20, 3);
    const Eigen::MatrixXd x = inputs(20, 9);
    const Eigen::MatrixXd second = x * x.transpose();
    const SparseGptOptions options{.pattern = pattern, .runs = {20}, .block = 6};
    const SparseGptResult found = sparsegpt(weights, second, options);
    expect_equal(found, Surgeon(weights, second, options).run());
    for (int64_t c = 0; c < 20; c += pattern.m) {
      const auto stays = found.keep.middleCols(c, pattern.m).cast<int>().rowwise().sum();
      EXPECT_TRUE((stays == pattern.n).all());
    }
  }
}

TEST(SparseGpt, TakesTheRatioExactly) {
  const Eigen::MatrixXd x = inputs(50, 11);
  const SparseGptOptions options{.ratio = 0.37, .block = 16};
  const auto found = sparsegpt(random_matrix(7, 50, 5), x * x.transpose(), options);
  EXPECT_EQ((found.keep == 0).count(), 129);  // floor(0.37 · 350)
}

TEST(SparseGpt, IndependentInputsNeedNoCompensation) {
  const Matrix weights{{3, 1, 2, 4}};
  const Eigen::MatrixXd second = Eigen::VectorXd{{1, 1, 25, 1}}.asDiagonal();
  const auto found = sparsegpt(weights, second, {.ratio = 0.5, .damping = 0});
  // Losses w²h: 9, 1, 100, 16.
  EXPECT_TRUE(found.weights.isApprox(Matrix{{0, 0, 2, 4}}, 1e-12));
}

TEST(SparseGpt, EqualInputsTakeOverForEachOther) {
  const Eigen::MatrixXd second{{1, 1}, {1, 1}};
  const auto found = sparsegpt(Matrix{{1, 2}}, second, {.ratio = 0.5, .damping = 1e-9});
  EXPECT_EQ(found.weights(0, 0), 0);
  EXPECT_NEAR(found.weights(0, 1), 3, 1e-6);
}

TEST(SparseGpt, InputsThatAreAlwaysZeroLoseTheirColumn) {
  const Eigen::MatrixXd second = Eigen::VectorXd{{1, 0, 1, 1}}.asDiagonal();
  const auto found = sparsegpt(Matrix{{1, 9, 2, 3}}, second, {.ratio = 0.25});
  EXPECT_TRUE(found.weights.isApprox(Matrix{{1, 0, 2, 3}}, 1e-12));
  EXPECT_EQ(found.keep(0, 1), 0);
  const auto nothing = sparsegpt(Matrix{{1, 2}}, Eigen::MatrixXd::Zero(2, 2), {.ratio = 0.5});
  EXPECT_TRUE(nothing.weights.isZero());
}

TEST(SparseGpt, LeavesLessErrorThanTheSameMaskWithoutCompensation) {
  const Matrix weights = random_matrix(16, 40, 21);
  const Eigen::MatrixXd x = inputs(40, 23);
  const auto found = sparsegpt(weights, x * x.transpose(), {.ratio = 0.5});
  const Matrix masked = weights.array() * found.keep.cast<double>();
  EXPECT_LT(((found.weights - weights) * x).norm(), 0.9 * ((masked - weights) * x).norm());
}

}  // namespace
}  // namespace parsimony::elements
