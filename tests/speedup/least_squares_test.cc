#include "parsimony/speedup/least_squares.h"

#include <gtest/gtest.h>

#include <Eigen/Cholesky>
#include <Eigen/QR>
#include <cmath>
#include <limits>
#include <random>
#include <set>

#include "parsimony/base/errors.h"

namespace parsimony {
namespace {

using Eigen::MatrixXd;

/// Numbers between -1 and 1, the same everywhere.
MatrixXd numbers(Eigen::Index rows, Eigen::Index columns, unsigned seed) {
  std::mt19937 random(seed);
  MatrixXd result(rows, columns);
  for (Eigen::Index i = 0; i < result.size(); ++i) {
    result(i) = static_cast<double>(random()) / 2147483647.5 - 1;
  }
  return result;
}

/// Samples as rows.
LeastSquaresSums sums_of(const MatrixXd& x, const MatrixXd& y) {
  return {x.transpose() * x, y.transpose() * x};
}

/// The same problem without sums: [X; √λ I] Wᵀ = [Y; 0] by QR.
MatrixXd by_qr(const MatrixXd& x, const MatrixXd& y, double lambda) {
  const Eigen::Index in = x.cols();
  MatrixXd system(x.rows() + in, in);
  system << x, MatrixXd::Identity(in, in) * std::sqrt(lambda);
  MatrixXd target = MatrixXd::Zero(x.rows() + in, y.cols());
  target.topRows(y.rows()) = y;
  return system.colPivHouseholderQr().solve(target).transpose();
}

double apart(const MatrixXd& a, const MatrixXd& b) { return (a - b).norm() / b.norm(); }

TEST(LeastSquares, FindsTheMapThatMadeTheAnswers) {
  const MatrixXd x = numbers(50, 7, 1);
  const MatrixXd map = numbers(3, 7, 2);
  EXPECT_LT(apart(least_squares(sums_of(x, x * map.transpose()), 0), map), 1e-10);
}

TEST(LeastSquares, EqualsADenseSolveInDouble) {
  for (const double ridge : {0.0, 1e-6, 1e-3, 0.5}) {
    const MatrixXd x = numbers(200, 24, 3);
    const MatrixXd y = numbers(200, 10, 4);
    const double lambda = ridge * (x.transpose() * x).trace() / 24;
    EXPECT_LT(apart(least_squares(sums_of(x, y), ridge), by_qr(x, y, lambda)), 1e-5) << ridge;
  }
}

TEST(LeastSquares, RidgeHoldsWhereInputsDependOnEachOther) {
  MatrixXd x = numbers(40, 6, 5);
  x.col(5) = x.col(0) + x.col(1);
  const MatrixXd y = numbers(40, 2, 6);
  const double lambda = 1e-3 * (x.transpose() * x).trace() / 6;
  EXPECT_LT(apart(least_squares(sums_of(x, y), 1e-3), by_qr(x, y, lambda)), 1e-5);
}

TEST(LeastSquares, NothingSeenIsNoChange) {
  const LeastSquaresSums sums{MatrixXd::Zero(4, 4), MatrixXd::Zero(2, 4)};
  const MatrixXd map = least_squares(sums, 0);
  EXPECT_EQ(map.rows(), 2);
  EXPECT_TRUE(map.isZero(0));
}

/// Samples of which some are held out.
struct Split {
  MatrixXd x, y;  ///< seen
  MatrixXd held_x, held_y;

  SplitSums sums() const {
    return {sums_of(x, y), sums_of(held_x, held_y), held_y.squaredNorm(), 4 * held_y.squaredNorm()};
  }
  double error(const MatrixXd& map) const {
    return (held_y - held_x * map.transpose()).squaredNorm();
  }
};

/// `rows` samples of a map, with noise of this size.
Split noisy(int rows, int in, double noise, unsigned seed) {
  const MatrixXd map = numbers(3, in, seed);
  Split split{numbers(rows, in, seed + 1), {}, numbers(rows, in, seed + 2), {}};
  split.y = split.x * map.transpose() + noise * numbers(rows, 3, seed + 3);
  split.held_y = split.held_x * map.transpose() + noise * numbers(rows, 3, seed + 4);
  return split;
}

TEST(ValidatedFit, FindsTheErrorOfWhatWasHeldOutWithoutTheSamples) {
  const Split split = noisy(30, 8, 0.5, 10);
  for (const double ridge : {0.0, 1e-3, 1.0}) {
    const MatrixXd map = least_squares(sums_of(split.x, split.y), ridge);
    EXPECT_NEAR(held_out_error(split.sums(), map), split.error(map), 1e-9 * split.error(map));
  }
}

TEST(ValidatedFit, TakesTheRidgeThatServesBestWhatWasHeldOut) {
  std::set<double> taken;
  for (const double noise : {0.0, 0.3, 1.0, 3.0}) {
    const std::vector<Split> groups = {noisy(14, 12, noise, 20), noisy(14, 12, noise, 30)};
    double best = std::numeric_limits<double>::infinity();
    double target = 0;
    for (const double ridge : {1e-4, 1e-3, 1e-2, 1e-1, 1.0}) {
      double error = 0;
      for (const Split& split : groups) {
        const double lambda = ridge * split.x.squaredNorm() / 12;
        error += split.error(by_qr(split.x, split.y, lambda));
      }
      if (error < best) target = ridge;
      best = std::min(best, error);
    }
    const ValidatedFit fit = validated_fit({groups[0].sums(), groups[1].sums()}, {});
    EXPECT_EQ(fit.ridge, target) << noise;
    EXPECT_NEAR(fit.after, best, 1e-6 * best + 1e-9) << noise;
    EXPECT_NEAR(fit.before, groups[0].held_y.squaredNorm() + groups[1].held_y.squaredNorm(), 1e-9);
    EXPECT_DOUBLE_EQ(fit.target, 4 * fit.before);
    taken.insert(fit.ridge);
  }
  EXPECT_GT(taken.size(), 1U);
}

TEST(ValidatedFit, IsInTheEndOfAllSamples) {
  const Split split = noisy(20, 6, 0.3, 40);
  MatrixXd x(40, 6);
  MatrixXd y(40, 3);
  x << split.x, split.held_x;
  y << split.y, split.held_y;
  const ValidatedFit fit = validated_fit({split.sums()}, 1e-2);
  EXPECT_EQ(fit.ridge, 1e-2);
  EXPECT_TRUE(fit.helps());
  EXPECT_LT(apart(fit.all.at(0), by_qr(x, y, 1e-2 * x.squaredNorm() / 6)), 1e-8);
  EXPECT_LT(apart(fit.seen.at(0), by_qr(split.x, split.y, 1e-2 * split.x.squaredNorm() / 6)), 1e-8);
}

TEST(ValidatedFit, DoesNotHelpWhereItHasLearntNoiseOnly) {
  Split split = noisy(10, 9, 0, 50);
  split.y = numbers(10, 3, 51);
  split.held_y = 0.1 * numbers(10, 3, 52);
  EXPECT_FALSE(validated_fit({split.sums()}, {}).helps());
  EXPECT_FALSE(validated_fit({split.sums()}, 1e-3).helps());
}

TEST(ValidatedFit, IsNotJudgedWhereNothingWasHeldOut) {
  const Split split = noisy(20, 6, 0.3, 60);
  const ValidatedFit fit = validated_fit({{sums_of(split.x, split.y), {}}}, {});
  EXPECT_FALSE(fit.validated);
  EXPECT_TRUE(fit.helps());
  EXPECT_EQ(fit.ridge, 1e-3);
  EXPECT_EQ(fit.all.at(0), least_squares(sums_of(split.x, split.y), 1e-3));
}

TEST(ValidatedFit, LargeSystemsAreForTheKernels) {
  for (const int in : {8, 300}) {
    const Split split = noisy(in + 50, in, 0.3, 80);
    int asked = 0;
    const auto can = [&] { return ++asked > 2; };  // as if they could not: there is another way
    const MatrixKernels kernels = {[&](const MatrixXd& a, const MatrixXd& b, MatrixXd& c) {
                                     if (can()) c = a * b;
                                     return asked > 2;
                                   },
                                   [&](const MatrixXd& a, MatrixXd& b) {
                                     if (can()) b = a.ldlt().solve(b).eval();
                                     return asked > 2;
                                   }};
    const ValidatedFit alone = validated_fit({split.sums()}, {});
    const ValidatedFit fit = validated_fit({split.sums()}, {}, kernels);
    EXPECT_EQ(asked > 2, in == 300);
    EXPECT_EQ(fit.ridge, alone.ridge);
    EXPECT_NEAR(fit.after, alone.after, 1e-9 * alone.after);
    EXPECT_LT(apart(fit.all.at(0), alone.all.at(0)), 1e-9);
  }
}

TEST(ValidatedFit, NothingLacksIsNoFit) {
  const SplitSums sums{{MatrixXd::Identity(2, 2), MatrixXd::Zero(1, 2)}, {}};
  EXPECT_FALSE(validated_fit({sums}, {}).helps());
  EXPECT_FALSE(validated_fit({}, {}).helps());
  SplitSums rounded = noisy(20, 6, 0, 70).sums();
  EXPECT_TRUE(validated_fit({rounded}, {}).helps());
  rounded.target = 1e12 * rounded.residual;
  EXPECT_FALSE(validated_fit({rounded}, {}).helps());
}

std::string message_of(const LeastSquaresSums& sums) {
  try {
    least_squares(sums, 0);
  } catch (const ModelError& error) {
    return error.what();
  }
  return "";
}

TEST(LeastSquares, SaysWhatIsWrongWithTheSums) {
  EXPECT_EQ(
      message_of({MatrixXd::Zero(4, 4), MatrixXd::Zero(2, 3)}),
      "least squares: the second moments are [4, 4], the cross moments have 3 columns; expected "
      "[in, in] and in columns");
  MatrixXd broken = MatrixXd::Identity(2, 2);
  broken(0, 1) = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(message_of({broken, MatrixXd::Zero(1, 2)}),
            "least squares: the sums hold infinities or NaN; look for them in the calibration data "
            "and in the network's weights");
}

}  // namespace
}  // namespace parsimony
