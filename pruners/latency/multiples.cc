#include "parsimony/pruners/latency/multiples.h"

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <vector>

namespace parsimony {
namespace {

constexpr int kLargest = 64;
constexpr double kLeap = 1.05;  // beyond what the work grows by, and beyond noise

/// Of the numbers in [first, last] the largest power of two that divides one of them.
int most_even(int first, int last) {
  int most = 1;
  for (int width = first; width <= last; ++width) {
    const auto bits = static_cast<uint32_t>(width);
    most = std::max(most, static_cast<int>(bits & (~bits + 1)));
  }
  return most;
}

/// Do widths in the same block take the same time?
bool even_within(int multiple, std::span<const int> widths, std::span<const double> seconds) {
  for (size_t i = 0; i < widths.size(); ++i) {
    for (size_t j = i + 1; j < widths.size(); ++j) {
      const bool together = (widths[i] - 1) / multiple == (widths[j] - 1) / multiple;
      if (together && seconds[j] > kLeap * seconds[i]) return false;
    }
  }
  return true;
}

/// The times along one axis, where the other one is whole.
std::vector<double> times_along(const LatencyTable& table, size_t axis) {
  std::vector<double> times;
  const size_t columns = table.y.size();
  if (axis == 0) {
    for (size_t i = 0; i < table.x.size(); ++i) {
      times.push_back(table.seconds[i * columns + columns - 1]);
    }
  } else {
    const auto last = table.seconds.end() - static_cast<std::ptrdiff_t>(columns);
    times.assign(last, table.seconds.end());
  }
  return times;
}

/// The group whose channels alone a dim class has, and how many indices each of them has.
struct Owner {
  GroupId group = kNone;
  int indices = 1;
};

Owner owner_of(const Coupling& coupling, DimClassId dim_class) {
  const auto channels = coupling.channels(dim_class);
  if (channels.empty()) return {};
  const GroupId group = channels.front().group;
  const bool alone =
      std::ranges::all_of(channels, [&](const ChannelId& c) { return c.group == group; });
  if (group == kNone || !alone) return {};
  return {group, static_cast<int>(std::ssize(channels)) / coupling.groups[group].size};
}

}  // namespace

int multiple_of_steps(std::span<const int> widths, std::span<const double> seconds) {
  constexpr int kClose = 4;  // indices between two widths that show where a step is
  int multiple = 0;
  for (size_t i = 1; i < widths.size(); ++i) {
    const int before = widths[i - 1];
    const bool close = widths[i] - before <= kClose && before > 1;
    const double grown = static_cast<double>(widths[i]) / before;
    if (!close || seconds[i] < seconds[i - 1] * grown * kLeap) continue;
    const int step = std::min(most_even(before, widths[i] - 1), kLargest);
    multiple = multiple == 0 ? step : std::min(multiple, step);
  }
  while (multiple > 1 && !even_within(multiple, widths, seconds)) multiple /= 2;
  return multiple;
}

PerGroup<int> multiples_of(const Coupling& coupling, std::span<const Subgraph> subgraphs,
                           const LatencyTables& tables) {
  PerGroup<int> multiples(coupling.groups.size(), 0);
  for (const Subgraph& subgraph : subgraphs) {
    const auto table = tables.find(subgraph.key);
    if (table == tables.end() || !table->second.is_sound()) continue;
    for (size_t axis = 0; axis < subgraph.dim_classes.size(); ++axis) {
      const Owner owner = owner_of(coupling, subgraph.dim_classes[axis]);
      if (owner.group == kNone || owner.indices < 1) continue;
      const std::vector<int>& widths = axis == 0 ? table->second.x : table->second.y;
      const int indices = multiple_of_steps(widths, times_along(table->second, axis));
      if (indices == 0) continue;
      int& multiple = multiples[owner.group];
      multiple = std::max(multiple, indices / std::gcd(indices, owner.indices));
    }
  }
  for (const GroupId g : multiples.ids()) {
    while (multiples[g] > 1 && coupling.groups[g].size < 2 * multiples[g]) multiples[g] /= 2;
  }
  return multiples;
}

}  // namespace parsimony
