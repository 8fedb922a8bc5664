#include "parsimony/speedup/small_network.h"

#include <algorithm>
#include <cstring>

#include "parsimony/masks/element_mask.h"

namespace parsimony {
namespace {

/// The elements one after the other.
std::vector<std::byte> dense_bytes(const Weight& weight) {
  const size_t size = size_of(weight.dtype);
  std::vector<std::byte> bytes(weight.count() * size);
  for (int64_t i = 0; i < weight.count(); ++i) {
    std::memcpy(bytes.data() + i * size, weight.data + i * weight.stride, size);
  }
  return bytes;
}

}  // namespace

void SmallNetwork::Editor::zero_smallest(const std::string& tensor, int64_t count) {
  const auto& weights = graph().weights;
  const auto found = std::find_if(weights.begin(), weights.end(),
                                  [&](const Weight& w) { return w.name == tensor; });
  if (found == weights.end()) return GraphEditor::zero_smallest(tensor, count);
  const ElementMask mask = mask_smallest(*found, count);
  std::vector<std::byte> bytes = dense_bytes(*found);
  const size_t size = size_of(found->dtype);
  for (size_t i = 0; i < mask.keep.size(); ++i) {
    if (mask.keep[i] == 0) std::memset(bytes.data() + i * size, 0, size);
  }
  GraphEditor::assign(tensor, bytes);
}

SmallNetwork::SmallNetwork(const Graph& original, const Plan& plan)
    : editor_(original), updates_(plan.updates) {
  replay(plan, editor_);
  for (const PlanGroup& group : plan.groups) {
    for (const PlanSlice& slice : group.slices) {
      cuts_[slice.tensor].push_back({slice.axis, slice.size, slice.keep});
    }
  }
  for (auto& [tensor, axes] : cuts_) axes = merged(axes);
}

std::vector<int64_t> SmallNetwork::kept(const std::string& weight, int axis) const {
  const auto cut = cuts_.find(weight);
  const AxisKeep* found = cut == cuts_.end() ? nullptr : find_axis(cut->second, axis);
  return found == nullptr ? std::vector<int64_t>() : found->keep;
}

void SmallNetwork::assign(const Weight& weight, const std::vector<std::byte>& values,
                          const std::string& reason) {
  if (dense_bytes(weight) == values) return;
  // `weight` may refer to what changes.
  const TensorUpdate update{weight.name, reason, values, weight.dtype, weight.dims};
  const std::string& tensor = update.tensor;
  editor_.assign(tensor, values);
  const auto same = [&](const TensorUpdate& other) { return other.tensor == tensor; };
  const auto known = std::find_if(updates_.begin(), updates_.end(), same);
  if (known == updates_.end()) {
    updates_.push_back(update);
    return;
  }
  known->values = update.values;
  known->dtype = update.dtype;
  known->dims = update.dims;
  if (known->reason.find(reason) == std::string::npos) known->reason += "; " + reason;
}

std::vector<TensorUpdate> SmallNetwork::updates() const { return updates_; }

}  // namespace parsimony
