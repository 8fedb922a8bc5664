#include <absl/container/flat_hash_map.h>

#include <algorithm>
#include <string_view>
#include <unordered_set>
#include <utility>

#include "parsimony/base/errors.h"
#include "parsimony/graph/slice.h"
#include "parsimony/speedup/plan.h"

namespace parsimony {
namespace {

/// Adds a slice to what is cut of its tensor; of one axis, what both keep stays.
void add(const PlanSlice& slice, std::vector<AxisKeep>& axes) {
  AxisKeep* same = find_axis(axes, slice.axis);
  if (same == nullptr) {
    axes.push_back({slice.axis, slice.size, slice.keep});
    return;
  }
  if (same->size != slice.size) {
    throw ConfigError("plan: tensor ", in_quotes(slice.tensor), ", axis ", slice.axis,
                      ": one slice has size ", same->size, ", another ", slice.size);
  }
  same->keep = common(same->keep, slice.keep);
  if (same->keep.empty()) {
    throw ConfigError("plan: tensor ", in_quotes(slice.tensor), ", axis ", slice.axis,
                      ": its slices keep no index in common; at least one must stay");
  }
}

void change(const PlanInteger& entry, ModelEditor& editor) {
  if (entry.input < 0 && entry.to.floating()) {
    editor.set_number(entry.node, entry.what, entry.to.number(0));
  } else if (entry.input < 0) {
    editor.set_attribute(entry.node, entry.what, entry.to.ints);
  } else {
    editor.set_input(entry.node, entry.input, entry.to);
  }
}

}  // namespace

std::vector<TensorCut> cuts_of(const Plan& plan) {
  std::vector<TensorCut> cuts;
  absl::flat_hash_map<std::string_view, size_t> index;
  index.reserve(4 * plan.groups.size());
  for (const PlanGroup& group : plan.groups) {
    for (const PlanSlice& slice : group.slices) {
      const auto [found, is_new] = index.emplace(slice.tensor, cuts.size());
      if (is_new) cuts.push_back({slice.tensor, {}});
      add(slice, cuts[found->second].axes);
    }
  }
  for (TensorCut& cut : cuts) {
    std::erase_if(cut.axes, [](const AxisKeep& axis) {
      return static_cast<int64_t>(axis.keep.size()) == axis.size;
    });
    std::ranges::sort(cut.axes, {}, &AxisKeep::axis);
  }
  std::erase_if(cuts, [](const TensorCut& cut) { return cut.axes.empty(); });
  return cuts;
}

TensorCuts cuts_by_tensor(const Plan& plan) {
  TensorCuts cuts;
  for (TensorCut& cut : cuts_of(plan)) cuts.emplace(cut.tensor, std::move(cut.axes));
  return cuts;
}

std::vector<AxisKeep> cuts_of_end(const Plan& plan, std::string_view value, bool input) {
  std::vector<AxisKeep> axes;
  for (const PlanEnd& end : plan.ends) {
    if (end.input == input && end.value == value) axes.push_back({end.axis, end.size, end.keep});
  }
  return axes;
}

const TensorUpdate* incomplete_update(const Plan& plan) {
  std::unordered_set<std::string_view> zeroed;
  for (const PlanZeros& entry : plan.zeros) zeroed.insert(entry.tensor);
  const auto found = std::ranges::find_if(plan.updates, [&](const TensorUpdate& update) {
    const bool missing = update.dtype != DType::kUnknown || !zeroed.contains(update.tensor);
    return update.values.empty() && missing;
  });
  return found == plan.updates.end() ? nullptr : &*found;
}

void replay(const Plan& plan, ModelEditor& editor) {
  // Detects errors that do not depend on the model before editing it.
  if (const TensorUpdate* update = incomplete_update(plan)) {
    throw UnsupportedError("plan: folds: tensor ", in_quotes(update->tensor),
                           ": its new values are not there");
  }
  const std::vector<TensorCut> cuts = cuts_of(plan);

  for (const PlanBlock& block : plan.blocks) editor.bypass(block.add, block.kept_input);
  for (const PlanCopy& copy : plan.copies) {
    editor.copy(copy.tensor, copy.of, copy.consumer, copy.input);
  }
  // Zeros count the elements of the whole tensor, hence before it is cut.
  for (const PlanZeros& entry : plan.zeros) {
    if (entry.smallest > 0) editor.zero_smallest(entry.tensor, entry.smallest);
  }
  for (const TensorCut& cut : cuts) editor.slice(std::string(cut.tensor), cut.axes);
  for (const PlanEnd& end : plan.ends) {
    const AxisKeep axis{end.axis, end.size, end.keep};
    if (end.input) editor.slice_input(end.value, {&axis, 1});
  }
  for (const TensorUpdate& update : plan.updates) {
    if (!update.values.empty()) editor.assign(update.tensor, update.values);
  }
  for (const PlanInteger& entry : plan.integers) change(entry, editor);
  for (const PlanScale& entry : plan.scales) change(entry.change, editor);
}

}  // namespace parsimony
