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
constexpr Eigen::Index kLarge = 256;  // columns, from which on an engine's kernels pay off
// The rounding of float32: error relative to target where a layer gives just the target.
constexpr double kRounding = 1e-6;

/// The solution of the sums, and of those that are added to them.
Eigen::MatrixXd solution(const LeastSquaresSums& sums, const LeastSquaresSums* added, double ridge,
                         const MatrixKernels& kernels) {
  const Eigen::Index in = sums.second.rows();
  const auto system_of = [&]() -> Eigen::MatrixXd {
    Eigen::MatrixXd system = sums.second;
    if (added != nullptr) system += added->second;
    system.diagonal().array() += ridge * system.trace() / static_cast<double>(in);
    return system;
  };
  Eigen::MatrixXd right = sums.cross.transpose();
  if (added != nullptr) right += added->cross.transpose();
  Eigen::MatrixXd system = system_of();
  if (in == 0 || system.trace() == 0) return Eigen::MatrixXd::Zero(right.cols(), in);
  const bool asks = ridge > 0 && in >= kLarge && kernels.solve;
  if (asks && kernels.solve(system, right)) return right.transpose();
  if (ridge > 0) {  // many times as fast as LDLT, which stands singular systems
    const Eigen::LLT<Eigen::Ref<Eigen::MatrixXd>> factors(system);  // in place
    if (factors.info() == Eigen::Success) {
      factors.solveInPlace(right);
      return right.transpose();
    }
    system = system_of();
  }
  const Eigen::LDLT<Eigen::Ref<Eigen::MatrixXd>> factors(system);
  return factors.solve(right).transpose();
}

/// What a fit is to see: all if nothing else is there.
const LeastSquaresSums& seen_of(const SplitSums& sums) {
  return sums.seen.cross.size() > 0 ? sums.seen : sums.held_out;
}

bool is_split(const SplitSums& sums) {
  return sums.seen.cross.size() > 0 && sums.held_out.cross.size() > 0;
}

void check(const LeastSquaresSums& sums) {
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
}

bool lacks_nothing(const SplitSums& sums) {
  return sums.seen.cross.isZero(0) && sums.held_out.cross.isZero(0);
}

}  // namespace

Eigen::MatrixXd least_squares(const LeastSquaresSums& sums, double ridge) {
  check(sums);
  return solution(sums, nullptr, ridge, {});
}

double held_out_error(const SplitSums& sums, const Eigen::MatrixXd& map,
                      const MatrixKernels& kernels) {
  const auto& [second, cross] = sums.held_out;
  if (cross.size() == 0) return 0;
  Eigen::MatrixXd product(map.rows(), second.cols());
  const bool asks = second.rows() >= kLarge && kernels.multiply;
  if (!asks || !kernels.multiply(map, second, product)) product.noalias() = map * second;
  return (product - 2 * cross).cwiseProduct(map).sum() + sums.residual;
}

ValidatedFit validated_fit(const std::vector<SplitSums>& systems, std::optional<double> ridge,
                           const MatrixKernels& kernels) {
  ValidatedFit fit;
  if (std::ranges::all_of(systems, lacks_nothing)) return fit;
  for (const SplitSums& sums : systems) {
    fit.validated = fit.validated || is_split(sums);
    fit.before += sums.residual;
    fit.target += sums.target;
  }
  if (fit.validated && fit.before <= kRounding * kRounding * fit.target) return fit;
  for (const SplitSums& sums : systems) {
    check(sums.seen);
    check(sums.held_out);
  }
  std::vector<double> candidates(kRidges.begin(), kRidges.end());
  if (ridge || !fit.validated) candidates = {ridge.value_or(kUsualRidge)};
  for (const double candidate : candidates) {
    std::vector<Eigen::MatrixXd> maps;
    double error = 0;
    for (const SplitSums& sums : systems) {
      maps.push_back(solution(seen_of(sums), nullptr, candidate, kernels));
      if (is_split(sums)) error += held_out_error(sums, maps.back(), kernels);
    }
    if (!fit.seen.empty() && error >= fit.after) break;
    fit.seen = std::move(maps);
    fit.ridge = candidate;
    fit.after = error;
  }
  if (!fit.validated) {
    fit.all = fit.seen;
    return fit;
  }
  for (const SplitSums& sums : systems) {
    const LeastSquaresSums* rest = is_split(sums) ? &sums.held_out : nullptr;
    fit.all.push_back(solution(seen_of(sums), rest, fit.ridge, kernels));
  }
  return fit;
}

}  // namespace parsimony
