#include "parsimony/api/worth.h"

#include <algorithm>
#include <utility>

#include "parsimony/pruners/worth.h"

namespace parsimony {
namespace {

/// Ascending widths at which a group of `size` is judged: its tenths, none twice.
std::vector<int> judged_widths(int size) {
  constexpr int kParts = 10;
  std::vector<int> widths;
  for (int part = 1; part < kParts; ++part) {
    const int width = size * part / kParts;
    if (width > 0 && (widths.empty() || width > widths.back())) widths.push_back(width);
  }
  return widths;
}

}  // namespace

WorthMeter::WorthMeter(const Coupled& network, const Fidelity& fidelity)
    : network_(network), fidelity_(fidelity), whole_(fidelity(network.graph)) {}

std::vector<double> WorthMeter::shares(std::span<const int> groups,
                                       const Candidate& candidate) const {
  const int size = candidate.limits.size;
  const std::vector<std::vector<double>> scores(network_.coupling.groups.size());
  std::vector<std::pair<int, double>> known;
  for (const int width : judged_widths(size)) {
    AxisMasks masks = AxisMasks::all_kept(network_.coupling);
    for (const int group : groups) {
      keep_best(candidate, width, masks.keep[group]);
    }
    if (keep_at_least_one(network_.coupling, scores, masks) > 0) continue;
    const auto small = cut(network_, masks);
    if (!small) return {};
    known.emplace_back(width, fidelity_(small->graph()) / std::max(whole_, 1e-9));
  }
  const auto says_something = [](const auto& at) { return at.second > 0; };
  if (std::none_of(known.begin(), known.end(), says_something)) return {};
  return interpolated_shares(size, known);
}

}  // namespace parsimony
