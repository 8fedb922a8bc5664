#include "parsimony/speedup/scales.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <set>
#include <vector>

#include "parsimony/base/ranges.h"
#include "parsimony/graph/attributes.h"
#include "parsimony/graph/elements.h"
#include "parsimony/graph/infer.h"
#include "parsimony/graph/operators/factor.h"
#include "parsimony/graph/operators/node_view.h"
#include "parsimony/graph/operators/schema.h"
#include "parsimony/masks/cost.h"
#include "parsimony/masks/coupling.h"

namespace parsimony {
namespace {

/// An axis whose length a factor may encode.
struct ScaleAxis {
  ValueId value = kNone;
  int dim = 0;
  int64_t stride = 1;  ///< of the dimension's indices, those of (index / stride) % size
  int64_t size = 1;
  bool weighted = false;   ///< a weight is contracted along it
  bool embedding = false;  ///< not contracted: the row width of a lookup table
};

// Maximum number of nodes between a factor and the contraction: few in attention, a dozen with
// rotary embedding.
constexpr size_t kMostSteps = 48;
constexpr int kMostWeightSteps = 4;

bool is_attention(const Node& node) { return has_trait(node, kAttends); }
bool is_sum(const Node& node) { return has_trait(node, kSums) || is_attention(node); }

/// A weight, perhaps transposed or reshaped on its way.
bool is_static(const Graph& graph, const Facts& facts, ValueId value, int depth = 0) {
  if (value == kNone || facts.constants[value] || graph.value(value).weight != kNone) {
    return true;
  }
  const NodeId producer = graph.value(value).producer;
  if (producer == kNone || depth == kMostWeightSteps) return false;
  const auto& inputs = graph.node(producer).inputs;
  return std::ranges::all_of(inputs,
                             [&](ValueId v) { return is_static(graph, facts, v, depth + 1); });
}

/// The rows of a table that are looked up: their width is what an embedding is scaled by.
bool is_embedding(const Graph& graph, const Facts& facts, const Node& node) {
  const bool looks_up = schema_of(node).linear.kind == LinearKind::kLookup;
  if (!looks_up || node.inputs.size() != 2 || node.inputs[0] == kNone) return false;
  return graph.value(node.inputs[0]).weight != kNone && !is_static(graph, facts, node.inputs[1]);
}

/// The axes that `node` itself contracts; for attention, the head size.
std::vector<ScaleAxis> summed_axes(const Graph& graph, const Facts& facts, const Node& node) {
  const Factors factors = factor(NodeView(graph, node, facts));
  const bool product = !is_attention(node) && !has_trait(node, kReduces);
  const size_t sides = product ? std::min<size_t>(2, node.inputs.size()) : 0;
  const bool weighted =
      std::any_of(node.inputs.begin(), node.inputs.begin() + static_cast<std::ptrdiff_t>(sides),
                  [&](ValueId v) { return v != kNone && is_static(graph, facts, v); });
  std::vector<ScaleAxis> axes;
  std::vector<bool> seen(factors.labels.size(), false);
  for (const Term& term : factors.terms) {
    int64_t stride = 1;
    for (size_t i = term.labels.size(); i-- > 0;) {
      const auto l = static_cast<size_t>(term.labels[i]);
      const Label& label = factors.labels[l];
      const bool summed =
          is_attention(node) ? label.role == notation::LabelRole::kHeadDim : label.contracted;
      if (summed && !seen[l] && label.size > 1) {
        seen[l] = true;
        axes.push_back({term.value, term.dim, stride, label.size, weighted, false});
      }
      stride *= label.size;
    }
  }
  return axes;
}

/// A breadth-first walk over homogeneous operators.
class Walk {
 public:
  Walk(const Graph& graph, const Facts& facts) : graph_(graph), facts_(facts) {}

  std::vector<ScaleAxis> run(ValueId data, ValueId product) {
    std::vector<ValueId> before = {data};
    std::vector<ValueId> after = {product};
    for (size_t i = 0; i < kMostSteps && (i < before.size() || i < after.size()); ++i) {
      if (i < after.size()) step_forward(after[i], after);
      if (i < before.size()) step_back(before[i], before);
    }
    std::ranges::stable_sort(found_, {}, &ScaleAxis::weighted);
    return std::move(found_);
  }

 private:
  static void visit(ValueId value, std::vector<ValueId>& queue) {
    if (value == kNone || contains(queue, value)) return;
    queue.push_back(value);
  }

  void step_back(ValueId value, std::vector<ValueId>& queue) {
    const NodeId producer = graph_.value(value).producer;
    if (producer == kNone) return;
    const Node& node = graph_.node(producer);
    if (is_embedding(graph_, facts_, node)) {
      add_embedding(node);
    } else if (is_sum(node)) {
      add(summed_axes(graph_, facts_, node));
    } else if (has_trait(node, kHomogeneous)) {
      for (const ValueId input : node.inputs) {
        if (!is_static(graph_, facts_, input)) visit(input, queue);
      }
    }
  }

  void step_forward(ValueId value, std::vector<ValueId>& queue) {
    for (const Use& use : graph_.value(value).uses) {
      const Node& node = graph_.node(use.node);
      if (is_sum(node)) {
        add(summed_axes(graph_, facts_, node));
      } else if (has_trait(node, kHomogeneous)) {
        for (const ValueId output : node.outputs) visit(output, queue);
      }
    }
  }

  void add(const std::vector<ScaleAxis>& axes) {
    found_.insert(found_.end(), axes.begin(), axes.end());
  }

  void add_embedding(const Node& node) {
    const auto& shape = facts_.shapes[node.outputs[0]];
    if (!shape || shape->empty()) return;
    const auto last = static_cast<int>(shape->size()) - 1;
    found_.push_back({node.outputs[0], last, 1, shape->back(), false, true});
  }

  const Graph& graph_;
  const Facts& facts_;
  std::vector<ScaleAxis> found_;
};

/// The axes contracted near a factor on `data`, whose product is `product`; contractions of two
/// activations first, then by distance.
std::vector<ScaleAxis> axes_near(const Graph& graph, const Facts& facts, ValueId data,
                                 ValueId product) {
  return Walk(graph, facts).run(data, product);
}

/// Rounding tolerance of this type.
double rounding_of(DType type) {
  switch (type) {
    case DType::kFloat16:
      return 1e-3;
    case DType::kBFloat16:
      return 8e-3;
    default:
      return 1e-6;  // double too: exporters hold float32 in it
  }
}

double power(int64_t size, double exponent) {
  return std::pow(static_cast<double>(size), exponent);
}

/// Common numbers that do not encode a size, such as the 0.5 of a GELU.
bool stands_for_itself(double value) {
  const double magnitude = std::abs(value);
  return magnitude == 0.5 || magnitude == 1 || magnitude == 2;
}

/// Exponents of an axis' length that occur as factors.
std::vector<double> exponents_of(const ScaleAxis& axis) {
  if (axis.embedding) return {0.5};
  if (axis.weighted) return {-0.5, -1};
  return {-0.5, -0.25, -1, 0.5};  // 1/sqrt(d) once, or its root on both sides
}

/// The groups whose channels each own one coordinate of the axis.
std::vector<GroupId> groups_along(const Coupling& coupling, DimClassId dim_class,
                                  const ScaleAxis& axis) {
  const auto channels = coupling.channels(dim_class);
  std::vector<std::optional<ChannelId>> only(static_cast<size_t>(axis.size));
  for (int64_t i = 0; i < std::ssize(channels); ++i) {
    auto& known = only[static_cast<size_t>(i / axis.stride % axis.size)];
    const ChannelId& channel = channels[static_cast<size_t>(i)];
    if (!known) known = channel;
    if (!(*known == channel)) known = ChannelId{};  // shared by several channels
  }
  std::set<GroupId> groups;
  for (const auto& channel : only) {
    if (channel && channel->group != kNone) groups.insert(channel->group);
  }
  return {groups.begin(), groups.end()};
}

class ScaleSearch {
 public:
  ScaleSearch(const Graph& graph, const Facts& facts, const Coupling& coupling)
      : graph_(graph), facts_(facts), coupling_(coupling) {}

  std::vector<Scale> run() {
    for (const NodeId n : graph_.nodes.ids()) {
      const Node& node = graph_.nodes[n];
      if (node.outputs.empty() || node.outputs[0] == kNone) continue;
      if (facts_.computed[node.outputs[0]]) continue;
      const OpSchema& schema = schema_of(node);
      if (schema.has(kMultiplies) || schema.has(kDivides)) {
        factor_of(n, node, schema.has(kDivides));
      }
      if (!schema.scale.empty()) attribute_of(n, node, schema);
    }
    return std::move(found_);
  }

 private:
  void factor_of(NodeId id, const Node& node, bool divides) {
    if (node.inputs.size() != 2 || node.inputs[0] == kNone || node.inputs[1] == kNone) return;
    for (int i = divides ? 1 : 0; i < 2; ++i) {
      const ValueId operand = node.inputs[static_cast<size_t>(i)];
      const ValueId data = node.inputs[static_cast<size_t>(1 - i)];
      const auto& value = facts_.constants[operand];
      if (!value || !value->floating() || value->count() != 1) continue;
      if (facts_.constants[data]) continue;
      Scale scale{.node = id,
                  .input = i,
                  .what = "operand " + std::to_string(i),
                  .tensor = graph_.value(operand).name,
                  .value = *value,
                  .groups = {}};
      add(std::move(scale), axes_near(graph_, facts_, data, node.outputs[0]), divides);
    }
  }

  /// An attention without `scale` has an implied one.
  void attribute_of(NodeId id, const Node& node, const OpSchema& schema) {
    const std::vector<ScaleAxis> axes = summed_axes(graph_, facts_, node);
    if (axes.empty()) return;
    const auto* number = attr_if<double>(node, schema.scale);
    const bool implied = schema.has(kAttends) && (number == nullptr || *number == 0);
    if (number == nullptr && !implied) return;
    const double value = implied ? rounded(DType::kFloat32, power(axes[0].size, -0.5)) : *number;
    Scale scale{.node = id,
                .what = std::string(schema.scale),
                .tensor = {},
                .value = {DType::kFloat32, {}, {}, {value}},
                .groups = {}};
    add(std::move(scale), axes, false);
  }

  void add(Scale scale, const std::vector<ScaleAxis>& axes, bool divides) {
    const double value = scale.value.floats[0];
    const double allowed = rounding_of(scale.value.dtype) * value;
    for (const ScaleAxis& axis : axes) {
      if (axis.weighted && stands_for_itself(value)) continue;
      for (double exponent : exponents_of(axis)) {
        if (divides) exponent = -exponent;
        if (!(std::abs(power(axis.size, exponent) - value) <= allowed)) continue;
        const DimClassId dim_class = coupling_.dim_class_of(axis.value, axis.dim);
        if (dim_class == kNone) continue;
        scale.groups = groups_along(coupling_, dim_class, axis);
        if (scale.groups.empty()) continue;
        scale.exponent = exponent;
        scale.size = axis.size;
        scale.dim_class = dim_class;
        scale.stride = axis.stride;
        found_.push_back(std::move(scale));
        return;
      }
    }
  }

  const Graph& graph_;
  const Facts& facts_;
  const Coupling& coupling_;
  std::vector<Scale> found_;
};

bool is_about(const PlanInteger& entry, const std::string& node, const Scale& scale) {
  return entry.node == node && entry.input == scale.input &&
         (scale.input >= 0 || entry.what == scale.what);
}

}  // namespace

std::vector<Scale> find_scales(const Graph& graph, const Facts& facts, const Coupling& coupling) {
  return ScaleSearch(graph, facts, coupling).run();
}

std::string formula(const Scale& scale, int64_t size) {
  const std::string number = std::to_string(size);
  if (scale.exponent == -0.5) return "1/sqrt(" + number + ")";
  if (scale.exponent == 0.5) return "sqrt(" + number + ")";
  if (scale.exponent == -1) return "1/" + number;
  if (scale.exponent == 1) return number;
  return number + (scale.exponent < 0 ? "^-1/4" : "^1/4");
}

std::vector<CutScale> frozen_scales(const Graph& graph, const Facts& facts,
                                    const Coupling& coupling, const AxisMasks& masks,
                                    const Plan& plan) {
  std::vector<CutScale> cut;
  ValueConstants after;  // of what is computed from shapes
  for (Scale& scale : find_scales(graph, facts, coupling)) {
    const int64_t kept =
        kept_coordinates(coupling, masks, scale.dim_class, scale.stride, scale.size);
    if (kept == scale.size) continue;
    const Node& node = graph.node(scale.node);
    if (scale.input >= 0) {
      const ValueId operand = node.inputs[scale.input];
      if (after.empty()) after = reevaluate(graph, facts, predict_shapes(facts, coupling, masks));
      const std::string& key = key_of(graph, node);
      const bool frozen = std::ranges::any_of(
          plan.integers, [&](const PlanInteger& entry) { return is_about(entry, key, scale); });
      const bool follows = facts.computed[operand] && after[operand] != facts.constants[operand];
      if (follows && !frozen) continue;
    }
    HostTensor would_be = scale.value;
    would_be.floats[0] = rounded(would_be.dtype, power(kept, scale.exponent));
    cut.push_back({std::move(scale), kept, std::move(would_be)});
  }
  return cut;
}

void rescale(const Graph& graph, const std::vector<CutScale>& scales, Plan& plan) {
  for (const CutScale& cut : scales) {
    const Scale& scale = cut.scale;
    const std::string& key = key_of(graph, graph.node(scale.node));
    std::erase_if(plan.integers,
                  [&](const PlanInteger& entry) { return is_about(entry, key, scale); });
    plan.scales.push_back({{key, scale.what, scale.input, scale.value, cut.would_be},
                           formula(scale, scale.size),
                           formula(scale, cut.kept)});
  }
}

}  // namespace parsimony
