#include "parsimony/speedup/plan.h"

#include <absl/container/flat_hash_map.h>

#include <algorithm>
#include <iterator>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>

#include "parsimony/base/errors.h"
#include "parsimony/base/files.h"
#include "parsimony/base/hash.h"
#include "parsimony/graph/blocks.h"
#include "parsimony/graph/slice.h"
#include "parsimony/masks/tensor_file.h"

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
  changes.integers = plan.followed;
  return changes;
}

bool Plan::empty() const {
  const bool nothing_sliced =
      std::ranges::all_of(groups, [](const PlanGroup& group) { return whole(group); });
  const bool nothing_zeroed =
      std::ranges::all_of(zeros, [](const PlanZeros& entry) { return entry.smallest == 0; });
  return blocks.empty() && nothing_sliced && nothing_zeroed && integers.empty() && scales.empty() &&
         copies.empty() && updates.empty() && renamings.empty();
}

// The values that a plan holds beside its JSON: new elements of tensors, and masks.
namespace {

ConfigError values_differ(std::string_view file, std::string_view tensor, std::string_view found,
                          std::string_view expected) {
  return ConfigError(file, ": tensor ", in_quotes(tensor), ": found ", found,
                     ", the plan beside it wants ", expected, "; is it from another run?");
}

std::string mask_name(const PlanMask& mask) { return mask.tensor + ":mask"; }

std::string fingerprint(std::span<const std::byte> bytes) {
  return sha256({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
}

const FileTensor* find(const std::vector<FileTensor>& tensors, const std::string& name) {
  const auto it = std::ranges::lower_bound(tensors, name, {}, &FileTensor::name);
  return it != tensors.end() && it->name == name ? &*it : nullptr;
}

/// The tensor that the plan means, or a complaint.
std::span<const std::byte> values_of(const std::vector<FileTensor>& tensors,
                                     const std::string& name, DType dtype, const Shape& dims,
                                     const std::string& sha256, std::string_view file_name) {
  const FileTensor* tensor = find(tensors, name);
  if (tensor == nullptr) {
    throw ConfigError(file_name, ": lacks tensor ", in_quotes(name),
                      ", which the plan beside it names; is it from another run?");
  }
  if (tensor->dtype != dtype || tensor->dims != dims) {
    const auto text = [](DType type, const Shape& shape) {
      return std::string(name_of(type)) + to_string(shape);
    };
    throw values_differ(file_name, name, text(tensor->dtype, tensor->dims), text(dtype, dims));
  }
  if (!sha256.empty() && fingerprint(tensor->data) != sha256) {
    throw values_differ(file_name, name, "other elements", "those of SHA-256 " + sha256);
  }
  return tensor->data;
}

}  // namespace

bool Plan::has_values() const {
  const auto has_type = [](const TensorUpdate& update) { return update.dtype != DType::kUnknown; };
  return !masks.empty() || std::ranges::any_of(updates, has_type);
}

std::string Plan::values_file() const {
  std::vector<FileTensor> tensors;
  for (const TensorUpdate& update : updates) {
    if (update.dtype == DType::kUnknown) continue;
    tensors.push_back({update.tensor, update.dtype, update.dims, update.values});
  }
  for (const PlanMask& mask : masks) {
    tensors.push_back(
        {mask_name(mask), DType::kBool, mask.dims, std::as_bytes(std::span(mask.keep))});
  }
  return tensor_file(std::move(tensors));
}

void Plan::read_values(std::string_view bytes, std::string_view file_name) {
  const std::vector<FileTensor> tensors = parse_tensors(bytes, file_name);
  for (TensorUpdate& update : updates) {
    if (update.dtype == DType::kUnknown) continue;
    const auto values =
        values_of(tensors, update.tensor, update.dtype, update.dims, update.sha256, file_name);
    update.values.assign(values.begin(), values.end());
    update.sha256.clear();
  }
  for (PlanMask& mask : masks) {
    const auto values =
        values_of(tensors, mask_name(mask), DType::kBool, mask.dims, mask.sha256, file_name);
    mask.keep.clear();
    std::ranges::transform(values, std::back_inserter(mask.keep),
                           [](std::byte byte) { return byte != std::byte{0} ? 1 : 0; });
    mask.sha256.clear();
  }
}

std::string values_path(const std::string& path) { return path + ".safetensors"; }

void Plan::save(const std::string& path) const {
  const std::string text = to_json();  // may refuse, before anything is written
  if (has_values()) write_file(values_path(path), values_file());
  write_file(path, text);
}

Plan Plan::load(const std::string& path) {
  Plan plan = from_json(read_file(path), path);
  if (!plan.has_values()) return plan;
  const std::string file = values_path(path);
  std::string bytes;
  try {
    bytes = read_file(file);
  } catch (const IoError& error) {
    throw IoError(path, ": its updates have values, which are in a file beside it: ", error.what());
  }
  plan.read_values(bytes, file);
  return plan;
}

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

bool removes_blocks(const Plan& plan) {
  return std::ranges::any_of(plan.blocks, &std::string::empty, &PlanBlock::group);
}

std::pair<Graph, IdVector<NodeId, NodeId>> without_blocks(const Graph& graph,
                                                          const std::vector<PlanBlock>& blocks) {
  absl::flat_hash_map<std::string_view, const PlanBlock*> by_sum;
  for (const PlanBlock& block : blocks) by_sum.emplace(block.add, &block);
  std::vector<Bypass> bypasses;
  for (const NodeId n : graph.nodes.ids()) {
    const auto found = by_sum.find(key_of(graph, graph.nodes[n]));
    if (found != by_sum.end()) bypasses.push_back({n, found->second->kept_input});
  }
  Graph less = graph;
  IdVector<NodeId, NodeId> numbers = bypass(less, bypasses);
  return {std::move(less), std::move(numbers)};
}

void replay(const Plan& plan, ModelEditor& editor) {
  // Detects errors that do not depend on the model before editing it.
  if (const TensorUpdate* update = incomplete_update(plan)) {
    throw UnsupportedError("plan: updates: tensor ", in_quotes(update->tensor),
                           ": its new values are not there");
  }
  const std::vector<TensorCut> cuts = cuts_of(plan);

  std::unordered_set<std::string_view> sums;
  std::vector<BypassedNode> bypassed;
  for (const PlanBlock& block : plan.blocks) {
    if (!sums.insert(block.add).second) {
      throw ModelError("plan: blocks: ", in_quotes(block.add), " occurs twice");
    }
    bypassed.push_back({block.add, block.kept_input});
  }
  if (!bypassed.empty()) editor.bypass(bypassed);
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
