#include "parsimony/speedup/least_squares.h"

#include <Eigen/Cholesky>
#include <algorithm>
#include <array>
#include <utility>

#include "parsimony/base/errors.h"

namespace parsimony {
namespace {

constexpr auto kRidges = std::to_array({1e-4, 1e-3, 1e-2, 1e-1, 1.0});
constexpr double kUsualRidge = 1e-3;
// The rounding of float32: error relative to target where a layer gives just the target.
constexpr double kRounding = 1e-6;

std::vector<Eigen::MatrixXd> solutions(const std::vector<SplitSums>& systems, double ridge) {
  std::vector<Eigen::MatrixXd> maps;
  for (const SplitSums& sums : systems) maps.push_back(least_squares(sums.seen, ridge));
  return maps;
}

double error_of(const std::vector<SplitSums>& systems, const std::vector<Eigen::MatrixXd>& maps) {
  double error = 0;
  for (size_t i = 0; i < systems.size(); ++i) error += held_out_error(systems[i], maps[i]);
  return error;
}

bool lacks_nothing(const SplitSums& sums) {
  return sums.seen.cross.isZero(0) && sums.held_out.cross.isZero(0);
}

}  // namespace

Eigen::MatrixXd least_squares(const LeastSquaresSums& sums, double ridge) {
  const Eigen::Index in = sums.second.rows();
  if (sums.second.cols() != in || sums.cross.cols() != in) {
    throw ModelError("least squares: the second moments are [", sums.second.rows(), ", ",
                     sums.second.cols(), "], the cross moments have ", sums.cross.cols(),
                     " columns; expected [in, in] and in columns");
  }
  if (!sums.second.allFinite() || !sums.cross.allFinite()) {
    throw ModelError(
        "least squares: the sums hold infinities or NaN; look for them in the calibration data and "
        "in the network's weights");
  }
  const double trace = sums.second.trace();
  if (in == 0 || trace == 0) return Eigen::MatrixXd::Zero(sums.cross.rows(), in);
  Eigen::MatrixXd system = sums.second;
  system.diagonal().array() += ridge * trace / static_cast<double>(in);
  if (ridge > 0) {  // many times as fast as LDLT, which stands singular systems
    const Eigen::LLT<Eigen::MatrixXd> factors(system);
    if (factors.info() == Eigen::Success) {
      return factors.solve(sums.cross.transpose()).transpose();
    }
  }
  const Eigen::LDLT<Eigen::MatrixXd> factors(system);
  return factors.solve(sums.cross.transpose()).transpose();
}

double held_out_error(const SplitSums& sums, const Eigen::MatrixXd& map) {
  if (sums.held_out.cross.size() == 0) return 0;
  return (map * sums.held_out.second - 2 * sums.held_out.cross).cwiseProduct(map).sum() +
         sums.residual;
}

ValidatedFit validated_fit(std::vector<SplitSums> systems, std::optional<double> ridge) {
  ValidatedFit fit;
  if (std::ranges::all_of(systems, lacks_nothing)) return fit;
  for (SplitSums& sums : systems) {
    if (sums.seen.cross.size() == 0) sums.seen = std::exchange(sums.held_out, {});
    fit.validated = fit.validated || sums.held_out.cross.size() > 0;
    fit.before += sums.residual;
    fit.target += sums.target;
  }
  if (fit.validated && fit.before <= kRounding * kRounding * fit.target) return fit;
  std::vector<double> candidates(kRidges.begin(), kRidges.end());
  if (ridge || !fit.validated) candidates = {ridge.value_or(kUsualRidge)};
  for (const double candidate : candidates) {
    std::vector<Eigen::MatrixXd> maps = solutions(systems, candidate);
    const double error = error_of(systems, maps);
    if (!fit.seen.empty() && error >= fit.after) continue;
    fit.seen = std::move(maps);
    fit.ridge = candidate;
    fit.after = error;
  }
  for (SplitSums& sums : systems) {
    if (sums.held_out.cross.size() == 0) continue;
    sums.seen.second += sums.held_out.second;
    sums.seen.cross += sums.held_out.cross;
  }
  fit.all = fit.validated ? solutions(systems, fit.ridge) : fit.seen;
  return fit;
}

}  // namespace parsimony
