#include "parsimony/speedup/least_squares.h"

#include <gtest/gtest.h>

#include <Eigen/QR>
#include <cmath>
#include <limits>
#include <random>

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
  MatrixXd wanted = MatrixXd::Zero(x.rows() + in, y.cols());
  wanted.topRows(y.rows()) = y;
  return system.colPivHouseholderQr().solve(wanted).transpose();
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
      "least squares: the second moments are [4, 4], the cross moments have 3 columns; wanted "
      "[in, in] and in columns");
  MatrixXd broken = MatrixXd::Identity(2, 2);
  broken(0, 1) = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(message_of({broken, MatrixXd::Zero(1, 2)}),
            "least squares: the sums hold infinities or NaN; look for them in the calibration data "
            "and in the network's weights");
}

}  // namespace
}  // namespace parsimony
