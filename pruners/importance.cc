#include "parsimony/pruners/importance.h"

#include <algorithm>
#include <cmath>

namespace parsimony {

std::vector<double> score_curve(const Candidate& candidate) {
  std::vector<double> sums = {0};
  for (auto it = candidate.order.rbegin(); it != candidate.order.rend(); ++it) {
    sums.push_back(sums.back() + candidate.score[*it]);
  }
  const double all = sums.back();
  for (size_t k = 0; k < sums.size(); ++k) {
    sums[k] = std::isfinite(all) && all > 0
                  ? sums[k] / all
                  : static_cast<double>(k) / static_cast<double>(sums.size() - 1);
  }
  return sums;
}

std::vector<double> interpolated_curve(int size, std::span<const std::pair<int, double>> known) {
  std::vector<double> curve = {0};
  const auto draw_to = [&](int width, double share) {
    const double from = curve.back();
    const auto begin = static_cast<int>(curve.size()) - 1;
    for (int k = begin + 1; k <= width; ++k) {
      curve.push_back(from + (std::max(from, share) - from) * (k - begin) / (width - begin));
    }
  };
  for (const auto& [width, share] : known) draw_to(width, std::clamp(share, 0.0, 1.0));
  draw_to(size, 1);
  return curve;
}

double log_importance(double share) {
  constexpr double kLeast = 1e-6;
  return std::log(std::max(kLeast, share));
}

std::vector<double> importance_scores(const Candidate& candidate, std::span<const double> curve,
                                      double cost) {
  const int size = candidate.limits.size;
  const auto loss = [&](int removed) { return -log_importance(curve[size - removed]); };
  std::vector<double> scores(size);
  for (int at = 0; at < size;) {
    int next = at + 1;
    double slope = loss(next) - loss(at);
    for (int further = at + 2; further <= size; ++further) {
      const double flatter = (loss(further) - loss(at)) / (further - at);
      if (flatter > slope) continue;
      slope = flatter;
      next = further;
    }
    for (; at < next; ++at) {
      scores[candidate.order[at]] = slope / cost;
    }
  }
  return scores;
}

void keep_best(const Candidate& candidate, int width, std::vector<uint8_t>& keep) {
  const int removed = candidate.limits.size - width;
  for (int i = 0; i < candidate.limits.size; ++i) {
    keep[candidate.order[i]] = i < removed ? 0 : 1;
  }
}

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
