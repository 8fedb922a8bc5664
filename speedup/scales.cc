#include "parsimony/speedup/scales.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>

#include "parsimony/graph/attributes.h"
#include "parsimony/graph/elements.h"
#include "parsimony/graph/infer.h"
#include "parsimony/masks/cost.h"
#include "parsimony/speedup/scale_axes_impl.h"

namespace parsimony {
namespace {

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
