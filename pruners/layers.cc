#include "parsimony/pruners/layers.h"

#include <algorithm>
#include <set>
#include <utility>

#include "parsimony/graph/operators/linear_form.h"
#include "parsimony/graph/weights.h"
#include "parsimony/masks/magnitude.h"

namespace parsimony {

namespace {

/// Bounds the search through computed weights; real ones are a few nodes deep.
constexpr size_t kMaxNodes = 64;

bool is_matrix(const Weight& weight) {
  return weight.dims.size() >= 2 && has_magnitude(weight.dtype);
}

}  // namespace

Layers::Layers(const Graph& graph)
    : graph_(graph), weights_only_(depends_on_weights_only(graph)), is_layer_(graph.nodes.size()) {
  const auto is_made = [&](ValueId v) { return v == kNone || weights_only_[v]; };
  for (const NodeId n : graph.nodes.ids()) {
    const auto& outputs = graph.nodes[n].outputs;
    const bool folds = std::ranges::all_of(outputs, is_made);
    is_layer_[n] = !folds && !weights(n).empty();
  }
}

std::vector<ValueId> Layers::weights(NodeId layer) const {
  const Node& node = graph_.node(layer);
  std::vector<ValueId> open;
  for (const int i : weight_operands(node)) open.push_back(node.inputs[i]);
  std::vector<ValueId> found;
  std::set<ValueId> seen;
  for (size_t i = 0; i < open.size() && seen.size() < kMaxNodes; ++i) {
    if (open[i] == kNone || !weights_only_[open[i]]) continue;
    if (!seen.insert(open[i]).second) continue;
    const Value& value = graph_.value(open[i]);
    if (value.weight != kNone) {
      if (is_matrix(graph_.weight(value.weight))) found.push_back(open[i]);
    } else if (value.producer != kNone) {
      const auto& inputs = graph_.node(value.producer).inputs;
      open.insert(open.end(), inputs.begin(), inputs.end());
    }
  }
  return found;
}

std::vector<NodeId> Layers::using_weight_of(NodeId reader) const {
  std::vector<NodeId> open = {reader};
  std::vector<NodeId> found;
  std::set<NodeId> seen;
  for (size_t i = 0; i < open.size() && seen.size() < kMaxNodes; ++i) {
    if (!seen.insert(open[i]).second) continue;
    if (contains(open[i])) {
      found.push_back(open[i]);
      continue;
    }
    for (ValueId output : graph_.node(open[i]).outputs) {
      if (output == kNone || !weights_only_[output]) continue;
      for (const Use& use : graph_.value(output).uses) open.push_back(use.node);
    }
  }
  return found;
}

std::vector<NodeId> Layers::reading(ValueId weight) const {
  std::vector<NodeId> found;
  for (const Use& use : graph_.value(weight).uses) {
    const std::vector<NodeId> here = using_weight_of(use.node);
    found.insert(found.end(), here.begin(), here.end());
  }
  return found;
}

namespace {

class SiteFinder {
 public:
  SiteFinder(const Graph& graph, const Coupling& coupling)
      : graph_(graph), coupling_(coupling), layers_(graph) {}

  std::vector<Site> of(GroupId group) const {
    std::vector<Site> sites;
    for (const NodeId layer : layers_with(group, Role::kIn)) {
      const auto& inputs = graph_.node(layer).inputs;
      for (size_t i = 0; i < inputs.size(); ++i)
        add(group, layer, static_cast<int>(i), inputs[i], sites);
    }
    if (!sites.empty()) return sites;
    for (const NodeId layer : layers_with(group, Role::kOut)) {
      for (const ValueId value : graph_.node(layer).outputs) add(group, kNone, 0, value, sites);
    }
    return sites;
  }

 private:
  std::set<NodeId> layers_with(GroupId group, Role role) const {
    std::set<NodeId> found;
    for (const Member& member : coupling_.groups[group].members) {
      const bool matrix = graph_.weight_of(member.value).dims.size() >= 2;
      if (member.role != role || member.node == kNone || !matrix) continue;
      for (const NodeId layer : layers_.using_weight_of(member.node)) found.insert(layer);
    }
    return found;
  }

  void add(GroupId group, NodeId reader, int input, ValueId value, std::vector<Site>& sites) const {
    if (value == kNone || graph_.value(value).weight != kNone) return;
    const int dim = dim_of_group(coupling_, value, group);
    if (dim == kNone) return;
    sites.push_back(
        {group, reader, input, value, dim, channels_along(coupling_, value, dim, group)});
  }

  const Graph& graph_;
  const Coupling& coupling_;
  Layers layers_;
};

}  // namespace

int dim_of_group(const Coupling& coupling, ValueId value, GroupId group) {
  const auto& dim_classes = coupling.value_dim_classes[value];
  for (size_t dim = 0; dim < dim_classes.size(); ++dim) {
    if (dim_classes[dim] == kNone) continue;
    const auto channels = coupling.channels(dim_classes[dim]);
    const auto found = std::ranges::find(channels, group, &ChannelId::group);
    if (found != channels.end()) return static_cast<int>(dim);
  }
  return kNone;
}

std::vector<int64_t> channels_along(const Coupling& coupling, ValueId value, int dim,
                                    GroupId group) {
  const int64_t other = coupling.groups[group].size;
  std::vector<int64_t> channels;
  for (const ChannelId& c : coupling.channels(coupling.dim_class_of(value, dim))) {
    channels.push_back(c.group == group ? int64_t{c.channel} : other);
  }
  return channels;
}

std::vector<Site> sites_of(const Graph& graph, const Coupling& coupling) {
  const SiteFinder finder(graph, coupling);
  std::vector<Site> sites;
  for (const GroupId g : coupling.groups.ids()) {
    for (Site& site : finder.of(g)) sites.push_back(std::move(site));
  }
  return sites;
}

std::vector<MatrixInput> matrix_inputs(const Graph& graph, const std::set<std::string>& expected) {
  if (expected.empty()) return {};
  const IdVector<ValueId, bool> made = depends_on_weights_only(graph);
  const Layers layers(graph);
  std::vector<MatrixInput> inputs;
  const auto add = [&](NodeId id, ValueId matrix) {
    const Node& node = graph.node(id);
    const Weight& weight = graph.weight_of(matrix);
    const std::vector<int> operands = weight_operands(node);
    const auto operand =
        std::ranges::find_if(operands, [&](int i) { return made[node.inputs[i]]; });
    if (operand == operands.end()) return;
    const auto form = linear_form(node, *operand, weight.dims.size());
    if (!form) return;
    const bool recurrent = form->kind == LinearKind::kRecurrence;
    // The input of the recurrent matrix is no value of the graph.
    if (recurrent ? node.inputs[*operand] != matrix : !form->plain) return;
    if (form->kind == LinearKind::kMatrixProduct && weight.dims.size() != 2) return;
    inputs.push_back({id, form->data, node.inputs[form->data], &weight, form->kind});
  };
  for (const NodeId node : graph.nodes.ids()) {
    if (!layers.contains(node)) continue;
    for (const ValueId matrix : layers.weights(node)) {
      if (expected.contains(graph.weight_of(matrix).name)) add(node, matrix);
    }
  }
  return inputs;
}

}  // namespace parsimony
