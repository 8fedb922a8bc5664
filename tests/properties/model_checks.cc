// Judges of a model that was made: our own rules, and libonnx's shape inference in strict mode.
#include <onnx/checker.h>
#include <onnx/shape_inference/implementation.h>

#include <map>

#include "parsimony/base/errors.h"
#include "parsimony/base/ranges.h"
#include "parsimony/graph/operators/factor.h"
#include "parsimony/graph/operators/node_view.h"
#include "parsimony/masks/cost.h"
#include "tests/properties/workbench.h"

namespace parsimony::test {
namespace {

using Shapes = std::map<std::string, Shape>;  // -1: not known

onnx::ModelProto parse(const std::string& bytes) {
  onnx::ModelProto model;
  if (!model.ParseFromString(bytes)) throw std::runtime_error("not a model");
  return model;
}

/// libonnx trusts declared shapes; without them it has to find its own.
void forget_inner_shapes(onnx::ModelProto& model) { model.mutable_graph()->clear_value_info(); }

void note_shape(const onnx::ValueInfoProto& info, Shapes& shapes) {
  if (!info.type().tensor_type().has_shape()) return;
  Shape& shape = shapes[info.name()];
  for (const auto& dim : info.type().tensor_type().shape().dim()) {
    shape.push_back(dim.has_dim_value() ? dim.dim_value() : -1);
  }
}

/// @throws whatever libonnx throws
Shapes inferred_by_libonnx(const std::string& bytes) {
  onnx::ModelProto model = parse(bytes);
  forget_inner_shapes(model);
  onnx::ShapeInferenceOptions options{true, 1, true};
  onnx::shape_inference::InferShapes(model, onnx::OpSchemaRegistry::Instance(), options);
  Shapes shapes;
  for (const auto& info : model.graph().value_info()) note_shape(info, shapes);
  for (const auto& info : model.graph().output()) note_shape(info, shapes);
  return shapes;
}

bool agrees(const Shape& a, const Shape& b) {
  if (a.size() != b.size()) return false;
  for (size_t d = 0; d < a.size(); ++d) {
    if (a[d] >= 0 && b[d] >= 0 && a[d] != b[d]) return false;
  }
  return true;
}

}  // namespace

std::string misfit(const Graph& graph, const Facts& facts, const std::string& words) {
  for (const Node& node : graph.nodes) {
    const Factors factors = factor(NodeView(graph, node, facts));
    for (const Pin& pin : factors.pins) {
      if (pin.reason.find(words) != std::string::npos) {
        return label_of(graph, node) + ": " + pin.reason;
      }
    }
  }
  return "";
}

std::string misfit(const std::string& bytes, const PruneRequest& request, bool libonnx) {
  try {
    const Workbench bench(bytes, request);
    if (std::string text = misfit(bench.graph(), bench.facts()); !text.empty()) return text;
  } catch (const Error& error) {
    return error.what();
  }
  if (!libonnx) return "";
  try {
    onnx::checker::check_model(parse(bytes));
    inferred_by_libonnx(bytes);
  } catch (const std::exception& error) {
    return std::string("libonnx: ") + error.what();
  }
  return "";
}

namespace {

/// What is counted under the masks against what the file holds.
std::string count_difference(const Workbench& bench, const AxisMasks& masks,
                             const Workbench& after) {
  const CostModel model(bench.graph(), bench.facts(), bench.coupling());
  const CostModel small(after.graph(), after.facts(), after.coupling());
  const int64_t counted = model.under(masks).params;
  const int64_t found = small.dense().params;
  if (counted == found) return "";
  return "counted " + std::to_string(counted) + " parameters, found " + std::to_string(found);
}

/// Is the value of a part of the network that leaves with an expert?
bool leaves(const Workbench& bench, const AxisMasks& masks, const Value& value) {
  for (const GroupId g : bench.coupling().groups.ids()) {
    for (const ChannelBranch& own : bench.coupling().groups[g].branches) {
      if (masks.keeps({g, own.channel})) continue;
      if (value.producer == own.branch.add || contains(own.branch.nodes, value.producer)) {
        return true;
      }
    }
  }
  return false;
}

}  // namespace

std::string shape_difference(const Workbench& bench, const AxisMasks& masks,
                             const std::string& small, bool libonnx) {
  const auto predicted = predict_shapes(bench.facts(), bench.coupling(), masks);
  const Workbench after(small, bench.request());
  std::map<std::string, std::optional<Shape>> ours;
  for (const ValueId v : after.graph().values.ids()) {
    ours[after.graph().values[v].name] = after.facts().shapes[v];
  }
  const Shapes theirs = libonnx ? inferred_by_libonnx(small) : Shapes{};
  for (const ValueId v : bench.graph().values.ids()) {
    const Value& value = bench.graph().values[v];
    if (!predicted[v] || value.weight != kNone) continue;
    if (bench.facts().computed[v]) continue;  // follows from the others
    const auto found = ours.find(value.name);
    const std::string expected = value.name + ": predicted " + to_string(*predicted[v]);
    if (found == ours.end() && leaves(bench, masks, value)) continue;
    if (found == ours.end()) return expected + ", gone";
    if (found->second != predicted[v]) {
      return expected + ", inferred " + (found->second ? to_string(*found->second) : "nothing");
    }
    const auto it = theirs.find(value.name);
    if (it == theirs.end() || agrees(it->second, *predicted[v])) continue;
    return expected + ", libonnx finds " + to_string(it->second);
  }
  return count_difference(bench, masks, after);
}

}  // namespace parsimony::test
