#include "parsimony/speedup/small_network.h"

#include <algorithm>

#include "parsimony/graph/elements.h"
#include "parsimony/graph/slice.h"
#include "parsimony/speedup/masked_values.h"

namespace parsimony {

void ValueEditor::zero_smallest(const std::string& tensor, int64_t count) {
  const auto& weights = graph().weights;
  const auto found =
      std::ranges::find_if(weights, [&](const Weight& w) { return w.name == tensor; });
  if (found == weights.end()) return GraphEditor::zero_smallest(tensor, count);
  std::vector<std::byte> bytes = dense_bytes(*found);
  const TensorMask mask{.tensor = tensor, .smallest = count};
  mask_values(mask, {.dtype = found->dtype, .dims = found->dims, .values = bytes});
  GraphEditor::assign(tensor, bytes);
}

SmallNetwork::SmallNetwork(const Graph& original, const Plan& plan)
    : editor_(original), ends_(plan.ends), updates_(plan.updates) {
  replay(plan, editor_);
  cuts_ = cuts_by_tensor(plan);
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
  const auto known = std::ranges::find_if(updates_, same);
  if (known == updates_.end()) {
    updates_.push_back(update);
    return;
  }
  known->values = update.values;
  known->dtype = update.dtype;
  known->dims = update.dims;
  if (known->reason.find(reason) == std::string::npos) known->reason += "; " + reason;
}

void SmallNetwork::assign_numbers(const Weight& weight, const std::vector<double>& values,
                                  const std::string& reason) {
  const size_t size = size_of(weight.dtype);
  std::vector<std::byte> bytes(values.size() * size);
  for (size_t i = 0; i < values.size(); ++i) {
    write_number(values[i], weight.dtype, &bytes[i * size]);
  }
  assign(weight, bytes, reason);
}

std::vector<TensorUpdate> SmallNetwork::updates() const { return updates_; }

}  // namespace parsimony
