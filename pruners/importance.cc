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

}  // namespace parsimony
