#include "parsimony/onnx_io/masked.h"

#include <absl/container/flat_hash_map.h>

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
#include "parsimony/graph/infer.h"
#include "parsimony/graph/operators/factor.h"
#include "parsimony/graph/operators/linear_form.h"
#include "parsimony/graph/operators/node_view.h"
#include "parsimony/graph/weights.h"
#include "parsimony/graph/words.h"
#include "parsimony/masks/mask.h"
#include "parsimony/onnx_io/editor.h"
#include "parsimony/onnx_io/model_file_impl.h"
#include "parsimony/onnx_io/reader.h"
#include "parsimony/onnx_io/tensor_impl.h"
#include "parsimony/speedup/masked_values.h"

namespace parsimony::onnx_io {
namespace {

/// Returns the declared type, or that of the weights: the node's, else the network's.
DType type_of(const Graph& graph, ValueId v, const Node& node) {
  if (graph.value(v).dtype != DType::kUnknown) return graph.value(v).dtype;
  for (const ValueId input : node.inputs) {
    const WeightId weight = input == kNone ? kNone : graph.value(input).weight;
    if (weight != kNone && is_floating(graph.weight(weight).dtype)) {
      return graph.weight(weight).dtype;
    }
  }
  const auto usual = std::ranges::find_if(
      graph.weights, [](const Weight& weight) { return is_floating(weight.dtype); });
  return usual == graph.weights.end() ? DType::kFloat32 : usual->dtype;
}

/// Sets the branches of removed residual blocks to zero.
void remove_blocks(const ModelFile& file, const Plan& plan, OnnxEditor& editor) {
  if (!removes_blocks(plan)) return;
  const Graph graph = to_graph(file);
  for (const PlanBlock& block : plan.blocks) {
    if (!block.group.empty()) continue;
    const auto add = std::ranges::find_if(
        graph.nodes, [&](const Node& node) { return key_of(graph, node) == block.add; });
    if (add == graph.nodes.end()) throw parsimony::errors::not_in_model("node", block.add);
    const auto nothing = HostTensor::of(0, type_of(graph, add->outputs.front(), *add));
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

/// Returns the bytes of zero for the tensor's readers. Codes that share an element have their own
/// scales, which are zero.
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

/// Collects the masked weights; zero points are read before they are masked themselves.
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

namespace {

/// The masked original cannot be written for engines that read files.
UnsupportedError other_channels(std::string_view tensor) {
  return UnsupportedError("tensor ", in_quotes(tensor),
                          " loses elements that are not channels without the pruning's options, so "
                          "operators that mix them cannot be masked");
}

UnsupportedError not_gathered(std::string_view node) {
  return UnsupportedError("node ", in_quotes(node),
                          " depends on removed channels in a way that cannot be masked in a file");
}

/// Experts and words are channels only where they may leave.
CouplingOptions coupling_of(const Graph& graph, const Facts& facts, const Plan& plan) {
  CouplingOptions options;
  if (!plan.words.empty()) options.interface.free = find_words(graph, facts).dims;
  const bool experts = std::ranges::any_of(plan.groups, [](const PlanGroup& group) {
    return group.granularity == name_of(Granularity::kExpert);
  });
  if (experts) options.granularity = Granularity::kExpert;
  return options;
}

/// A dimension of which some elements are absent.
struct Gap {
  ValueId value = kNone;
  int dim = 0;
  int64_t size = 0;
  int64_t rank = 0;
  std::vector<int64_t> keep;
};

/// Returns whether the domain is neither ONNX's nor ONNX Runtime's.
bool is_own(const Node& node) {
  return !node.domain.empty() && node.domain != "com.microsoft" &&
         !node.domain.starts_with("ai.onnx");
}

class Gathering {
 public:
  Gathering(ModelFile& file, const Graph& graph, const Plan& plan)
      : file_(file),
        editor_(file),
        graph_(graph),
        plan_(plan),
        facts_(infer_with_choice(graph).facts),
        coupling_(couple(graph, facts_, coupling_of(graph, facts_, plan))),
        masks_(AxisMasks::all_kept(coupling_)) {}

  void run() {
    for (const PlanGroup& group : plan_.groups) {
      for (const PlanSlice& slice : group.slices) remove(slice);
    }
    for (const Node& node : graph_.nodes) {
      const std::vector<Gap> gaps = gaps_of(node);
      if (!gaps.empty()) surround(node, gaps);
    }
  }

 private:
  /// Marks the channels that the slice removes.
  void remove(const PlanSlice& slice) {
    std::vector<uint8_t> stays(slice.size, 0);
    for (const int64_t k : slice.keep) stays[k] = 1;
    for (const ValueId v : values_of(slice.tensor)) {
      const DimClassId dim_class = coupling_.dim_class_of(v, slice.axis);
      if (dim_class == kNone) continue;
      const auto channels = coupling_.channels(dim_class);
      if (std::ssize(channels) != slice.size) throw other_channels(slice.tensor);
      for (int64_t i = 0; i < slice.size; ++i) {
        if (stays[i] != 0) continue;
        const ChannelId& channel = channels[i];
        if (channel.group == kNone) throw other_channels(slice.tensor);
        masks_.keep[channel.group][channel.channel] = 0;
      }
    }
  }

  const std::vector<ValueId>& values_of(const std::string& tensor) {
    if (by_tensor_.empty()) {
      for (const ValueId v : graph_.values.ids()) {
        if (graph_.value(v).weight != kNone) by_tensor_[read_tensor(graph_.value(v))].push_back(v);
      }
    }
    return by_tensor_[tensor];
  }

  /// Returns the name of the weight, or of the copy that the plan makes for the value's reader.
  const std::string& read_tensor(const Value& value) const {
    for (const PlanCopy& copy : plan_.copies) {
      const auto is_given_it = [&](const Use& use) {
        return use.input == copy.input && key_of(graph_, graph_.node(use.node)) == copy.consumer;
      };
      if (std::ranges::any_of(value.uses, is_given_it)) return copy.tensor;
    }
    return graph_.weight(value.weight).name;
  }

  /// Returns the gaps along axes that the node mixes, or sums over if absent channels are not zero.
  std::vector<Gap> gaps_of(const Node& node) const {
    std::vector<Gap> gaps;
    const Factors factors = factor(NodeView(graph_, node, facts_));
    for (const Term& term : factors.terms) {
      const DimClassId dim_class = coupling_.dim_class_of(term.value, term.dim);
      if (dim_class == kNone || coupling_.channels(dim_class).empty()) continue;
      const auto any = [&](bool Label::*property) {
        return std::ranges::any_of(term.labels,
                                   [&](int label) { return factors.labels[label].*property; });
      };
      const bool summed = any(&Label::contracted) && leaves_numbers(dim_class);
      if (!any(&Label::mixes) && !summed) continue;
      std::vector<int64_t> keep = kept_indices(coupling_, masks_, dim_class);
      if (keep.empty()) continue;
      const auto long_ones = std::ranges::count_if(
          term.labels, [&](int label) { return factors.labels[label].size > 1; });
      if (summed && long_ones > 1) throw not_gathered(label_of(graph_, node));
      const auto& shape = facts_.shapes[term.value];
      gaps.push_back({term.value, term.dim, std::ssize(coupling_.channels(dim_class)),
                      shape ? std::ssize(*shape) : term.dim + 1, std::move(keep)});
    }
    return gaps;
  }

  /// Returns whether absent channels of the class can be nonzero although their weights are zero.
  bool leaves_numbers(DimClassId dim_class) const {
    return std::ranges::any_of(coupling_.channels(dim_class), [&](const ChannelId& channel) {
      return channel.group != kNone && coupling_.groups[channel.group].mixes &&
             !coupling_.groups[channel.group].zero && !masks_.keeps(channel);
    });
  }

  void surround(const Node& node, const std::vector<Gap>& gaps) {
    constexpr int kWhere = 9;  // the first opset that has it
    if (file_.opset() < kWhere) {
      throw UnsupportedError("masking operators that mix channels requires opset ", kWhere,
                             " or newer, found opset ", file_.opset());
    }
    // The results of the removed channels are unknown.
    if (is_own(node)) {
      throw UnsupportedError(
          "operator ", node.op,
          ": it mixes channels, and the results of the removed channels are unknown");
    }
    const std::string key = key_of(graph_, node);
    for (const PlanInteger& integer : plan_.integers) {
      if (integer.node == key) follow(integer);
    }
    const PlacedNode placed = index().node(key);
    std::vector<onnx::NodeProto> before;
    std::vector<onnx::NodeProto> after;
    for (const Gap& gap : gaps) {
      // Two operands that are one value may lack elements of different dimensions.
      if (std::ranges::count(node.inputs, gap.value) > 1) {
        throw not_gathered(label_of(graph_, node));
      }
      for (size_t i = 0; i < node.inputs.size(); ++i) {
        if (node.inputs[i] != gap.value) continue;
        std::string& name = *placed.node->mutable_input(static_cast<int>(i));
        before.push_back(gather(name, gap.keep, gap, placed));
        name = before.back().output(0);
      }
      for (size_t o = 0; o < node.outputs.size(); ++o) {
        if (node.outputs[o] != gap.value) continue;
        std::string& name = *placed.node->mutable_output(static_cast<int>(o));
        const std::string inner = index().claim_name(name + "_kept");
        const HostTensor zero = HostTensor::of(0, type_of(graph_, gap.value, node));
        scatter(inner, std::exchange(name, inner), gap, zero, placed, after);
      }
    }
    number_chosen(node, gaps, placed, after);
    insert(before, after, placed);
  }

  /// Places that were chosen among the kept elements become those in the original.
  void number_chosen(const Node& node, const std::vector<Gap>& gaps, const PlacedNode& placed,
                     std::vector<onnx::NodeProto>& after) {
    const int chosen = schema_of(node).chosen;
    if (chosen < 0 || chosen >= placed.node->output_size()) return;
    for (const Gap& gap : gaps) {
      if (gap.value != node.inputs.front()) continue;
      std::string& name = *placed.node->mutable_output(chosen);
      if (name.empty()) return;
      const std::string inner = index().claim_name(name + "_kept");
      onnx::NodeProto& made = after.emplace_back();
      made.set_op_type("Gather");
      made.add_input(constant(name + "_places", HostTensor::vector(gap.keep), placed));
      made.add_input(inner);
      made.add_output(std::exchange(name, inner));
    }
  }

  void follow(const PlanInteger& integer) {
    if (integer.input >= 0) {
      editor_.set_input(integer.node, integer.input, integer.to);
    } else {
      editor_.set_attribute(integer.node, integer.what, integer.to.ints);
    }
  }

  std::string constant(const std::string& expected, const HostTensor& value,
                       const PlacedNode& placed) {
    const std::string name = index().fresh_name(expected);
    index().add(tensor_of(name, value), *placed.scope);
    return name;
  }

  onnx::NodeProto gather(const std::string& from, std::vector<int64_t> indices, const Gap& gap,
                         const PlacedNode& placed) {
    onnx::NodeProto made;
    made.set_op_type("Gather");
    made.add_input(from);
    made.add_input(constant(from + "_indices", HostTensor::vector(std::move(indices)), placed));
    made.add_output(index().claim_name(from + "_gathered"));
    onnx::AttributeProto& axis = *made.add_attribute();
    axis.set_name("axis");
    axis.set_type(onnx::AttributeProto::INT);
    axis.set_i(gap.dim);
    return made;
  }

  /// Scatters `inner`, with the kept elements, into `outer`, with all.
  void scatter(const std::string& inner, const std::string& outer, const Gap& gap,
               const HostTensor& zero, const PlacedNode& placed,
               std::vector<onnx::NodeProto>& after) {
    std::vector<int64_t> places(gap.size, 0);
    HostTensor present{DType::kBool, Shape(gap.rank - gap.dim, 1), {}, {}};
    present.dims.front() = gap.size;
    present.ints.assign(gap.size, 0);
    for (size_t k = 0; k < gap.keep.size(); ++k) {
      places[gap.keep[k]] = static_cast<int64_t>(k);
      present.ints[gap.keep[k]] = 1;
    }
    // Outer operations come first: a second gap of the same result is inside.
    std::vector<onnx::NodeProto> made = {gather(inner, std::move(places), gap, placed)};
    onnx::NodeProto& where = made.emplace_back();
    where.set_op_type("Where");
    where.add_input(constant(outer + "_present", present, placed));
    where.add_input(made.front().output(0));
    where.add_input(constant(outer + "_absent", zero, placed));
    where.add_output(outer);
    after.insert(after.begin(), made.begin(), made.end());
  }

  /// Inserts nodes in the order of the graph.
  static void insert(const std::vector<onnx::NodeProto>& before,
                     const std::vector<onnx::NodeProto>& after, const PlacedNode& placed) {
    auto& nodes = *placed.scope->nodes;
    const auto position_of = [&](const onnx::NodeProto* node) {
      return std::find(nodes.pointer_begin(), nodes.pointer_end(), node) - nodes.pointer_begin();
    };
    const auto place = [&](const std::vector<onnx::NodeProto>& added, int64_t position) {
      const int64_t end = nodes.size();
      for (const onnx::NodeProto& node : added) *nodes.Add() = node;
      std::rotate(nodes.pointer_begin() + position, nodes.pointer_begin() + end,
                  nodes.pointer_end());
    };
    place(before, position_of(placed.node));
    place(after, position_of(placed.node) + 1);
  }

  ModelIndex& index() { return *file_.impl().index; }

  ModelFile& file_;
  OnnxEditor editor_;
  const Graph& graph_;
  const Plan& plan_;
  const Facts facts_;
  const Coupling coupling_;
  AxisMasks masks_;
  absl::flat_hash_map<std::string, std::vector<ValueId>> by_tensor_;
};

}  // namespace

void gather_around_mixing(ModelFile& file, const Graph& graph, const Plan& plan) {
  Gathering(file, graph, plan).run();
}

}  // namespace parsimony::onnx_io
