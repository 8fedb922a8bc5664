#include "parsimony/onnx_io/masked.h"

#include <algorithm>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "parsimony/base/errors.h"
#include "parsimony/graph/elements.h"
#include "parsimony/graph/errors.h"
#include "parsimony/graph/operators/linear_form.h"
#include "parsimony/graph/operators/operands.h"
#include "parsimony/onnx_io/editor.h"
#include "parsimony/onnx_io/reader.h"
#include "parsimony/speedup/masked_values.h"

namespace parsimony::onnx_io {
namespace {

/// The branch of a removed block becomes zero.
void remove_blocks(const ModelFile& file, const Plan& plan, OnnxEditor& editor) {
  if (plan.blocks.empty()) return;
  const Graph graph = to_graph(file);
  for (const PlanBlock& block : plan.blocks) {
    const auto add = std::ranges::find_if(
        graph.nodes, [&](const Node& node) { return key_of(graph, node) == block.add; });
    if (add == graph.nodes.end()) throw parsimony::errors::not_in_model("node", block.add);
    const auto nothing = HostTensor::of(0, graph.value(add->outputs.front()).dtype);
    editor.set_input(block.add, 1 - block.kept_input, nothing);
  }
}

ZeroBytes zero_points(const Graph& graph, const Weight& weight, const Node& node, int operand,
                      int point) {
  const Value& value = graph.value(node.inputs[point]);
  if (value.weight == kNone) {
    throw UnsupportedError("tensor \"" + weight.name + "\": its zero point \"" + value.name +
                           "\" is computed");
  }
  ZeroBytes zero{dense_bytes(graph.weight(value.weight)), 1};
  if (zero.points.empty()) return {};
  if (std::ranges::adjacent_find(zero.points, std::not_equal_to<>()) == zero.points.end()) {
    zero.points.resize(1);
    return zero;
  }
  const auto axis = axis_along(node, operand, point, weight.dims.size());
  if (!axis || weight.dims[*axis] != std::ssize(zero.points)) {
    throw UnsupportedError("tensor \"" + weight.name + "\" has zero points that differ by block");
  }
  for (size_t d = weight.dims.size() - 1; std::cmp_greater(d, *axis); --d) {
    zero.inner *= weight.dims[d];
  }
  return zero;
}

/// For the tensor's readers. Codes that share an element have scales of their own, which are zero.
ZeroBytes zero_bytes(const Graph& graph, WeightId id) {
  if (size_of(graph.weight(id).dtype) != 1) return {};
  for (const Value& value : graph.values) {
    if (value.weight != id) continue;
    for (const Use& use : value.uses) {
      const Node& node = graph.node(use.node);
      const int point = zero_point_of(node, use.input);
      if (point >= 0 && schema_of(node).integers.bits.empty()) {
        return zero_points(graph, graph.weight(id), node, use.input, point);
      }
    }
  }
  return {};
}

struct MaskedWeight {
  TensorMask mask;
  DType dtype = DType::kUnknown;
  Shape dims;
  ZeroBytes zero;

  void operator()(std::span<std::byte> values, std::span<const int64_t> rows) const {
    mask_values(mask, {dtype, dims, values, rows}, zero);
  }
};

/// Zero points are read before they are masked themselves.
std::vector<MaskedWeight> masked_weights(const Graph& graph, const Plan& plan) {
  std::map<std::string_view, WeightId> by_name;
  for (const WeightId w : graph.weights.ids()) by_name.emplace(graph.weight(w).name, w);
  std::vector<MaskedWeight> weights;
  for (TensorMask& mask : tensor_masks(plan)) {
    if (!mask.changes_values()) continue;
    const auto known = by_name.find(mask.tensor);
    if (known == by_name.end()) throw parsimony::errors::not_in_model("tensor", mask.tensor);
    const Weight& weight = graph.weight(known->second);
    ZeroBytes zero = mask.slices.empty() ? ZeroBytes() : zero_bytes(graph, known->second);
    weights.push_back({std::move(mask), weight.dtype, weight.dims, std::move(zero)});
  }
  return weights;
}

}  // namespace

void mask(ModelFile& file, const Plan& plan) {
  OnnxEditor editor(file);
  remove_blocks(file, plan, editor);
  if (plan.constants == Constants::kDrop) replay(reference_changes(plan), editor);
  for (MaskedWeight& weight : masked_weights(to_graph(file), plan)) {
    const std::string name(weight.mask.tensor);
    editor.zero_smallest(name, std::exchange(weight.mask.smallest, 0));
    if (weight.mask.changes_values()) editor.change(name, weight);
  }
}

}  // namespace parsimony::onnx_io
