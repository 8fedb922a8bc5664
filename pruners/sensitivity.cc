#include "parsimony/pruners/sensitivity.h"

#include <algorithm>

namespace parsimony {
namespace {

constexpr int kHalvings = 60;
constexpr double kSlack = 1e-12;

double share_at(std::span<const SensitivityCurve> curves, double level) {
  double removed = 0;
  double all = 0;
  for (const SensitivityCurve& curve : curves) {
    removed += curve.ratio_at(level) * curve.size;
    all += curve.size;
  }
  return all > 0 ? removed / all : 0;
}

}  // namespace

double SensitivityCurve::ratio_at(double level) const {
  double ratio = 0;
  double error = 0;
  for (size_t i = 0; i < ratios.size(); ++i) {
    const double next = std::max(error, errors[i]);
    if (next > level) {
      return ratio + (ratios[i] - ratio) * (level - error) / (next - error);
    }
    ratio = ratios[i];
    error = next;
  }
  return ratio;
}

RatioProposal propose_ratios(std::span<const SensitivityCurve> curves, double ratio) {
  double low = 0;
  double high = 0;
  for (const SensitivityCurve& curve : curves) {
    for (const double error : curve.errors) high = std::max(high, error);
  }
  if (share_at(curves, low) + kSlack >= ratio) high = low;
  for (int i = 0; i < kHalvings && high > low; ++i) {
    const double middle = (low + high) / 2;
    (share_at(curves, middle) + kSlack >= ratio ? high : low) = middle;
  }
  RatioProposal proposal;
  proposal.level = high;
  proposal.reached = share_at(curves, high);
  for (const SensitivityCurve& curve : curves) proposal.ratios.push_back(curve.ratio_at(high));
  return proposal;
}

}  // namespace parsimony
