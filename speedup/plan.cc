#include "parsimony/speedup/plan.h"

#include <algorithm>

namespace parsimony {
namespace {

bool whole(const PlanSlice& slice) { return static_cast<int64_t>(slice.keep.size()) == slice.size; }

bool whole(const PlanGroup& group) {
  return std::ranges::all_of(group.slices, [](const PlanSlice& slice) { return whole(slice); });
}

}  // namespace

Plan reference_changes(const Plan& plan) {
  Plan changes;
  changes.copies = plan.copies;
  changes.scales = plan.scales;
  return changes;
}

bool Plan::empty() const {
  const bool nothing_sliced =
      std::ranges::all_of(groups, [](const PlanGroup& group) { return whole(group); });
  const bool nothing_zeroed =
      std::ranges::all_of(zeros, [](const PlanZeros& entry) { return entry.smallest == 0; });
  return blocks.empty() && nothing_sliced && nothing_zeroed && integers.empty() && scales.empty() &&
         copies.empty() && updates.empty();
}

}  // namespace parsimony
