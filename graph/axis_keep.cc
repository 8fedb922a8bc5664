#include "parsimony/graph/axis_keep.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace parsimony {

std::vector<int64_t> common(const std::vector<int64_t>& a, const std::vector<int64_t>& b) {
  std::vector<int64_t> both;
  std::set_intersection(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(both));
  return both;
}

const AxisKeep* find_axis(const std::vector<AxisKeep>& axes, int axis) {
  const auto it =
      std::ranges::find_if(axes, [&](const AxisKeep& entry) { return entry.axis == axis; });
  return it == axes.end() ? nullptr : &*it;
}

AxisKeep* find_axis(std::vector<AxisKeep>& axes, int axis) {
  return const_cast<AxisKeep*>(find_axis(std::as_const(axes), axis));
}

std::vector<AxisKeep> merged(std::span<const AxisKeep> axes) {
  std::vector<AxisKeep> result;
  for (const AxisKeep& axis : axes) {
    AxisKeep* known = find_axis(result, axis.axis);
    if (known == nullptr) {
      result.push_back(axis);
    } else {
      known->keep = common(known->keep, axis.keep);
    }
  }
  return result;
}

void compose(std::vector<AxisKeep>& cuts, std::span<const AxisKeep> further) {
  for (const AxisKeep& axis : further) {
    AxisKeep* known = find_axis(cuts, axis.axis);
    if (known == nullptr) {
      cuts.push_back(axis);
      continue;
    }
    std::vector<int64_t> keep;
    for (const int64_t index : axis.keep) keep.push_back(known->keep[index]);
    known->keep = std::move(keep);
  }
}

}  // namespace parsimony
