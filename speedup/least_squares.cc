#include "parsimony/speedup/least_squares.h"

#include <Eigen/Cholesky>

#include "parsimony/speedup/errors.h"

namespace parsimony {

Eigen::MatrixXd least_squares(const LeastSquaresSums& sums, double ridge) {
  const Eigen::Index in = sums.second.rows();
  if (sums.second.cols() != in || sums.cross.cols() != in) {
    throw errors::sums_do_not_fit(sums.second.rows(), sums.second.cols(), sums.cross.cols());
  }
  if (!sums.second.allFinite() || !sums.cross.allFinite()) throw errors::sums_not_finite();
  const double trace = sums.second.trace();
  if (in == 0 || trace == 0) return Eigen::MatrixXd::Zero(sums.cross.rows(), in);
  Eigen::MatrixXd system = sums.second;
  system.diagonal().array() += ridge * trace / static_cast<double>(in);
  const Eigen::LDLT<Eigen::MatrixXd> factors(system);
  return factors.solve(sums.cross.transpose()).transpose();
}

}  // namespace parsimony
