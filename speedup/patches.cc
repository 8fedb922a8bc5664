#include <algorithm>

#include "parsimony/base/errors.h"
#include "parsimony/graph/infer.h"
#include "parsimony/speedup/patches_impl.h"

namespace parsimony {
namespace {

/// Freezes numbers that are computed from a shape and used as data: a scale such as
/// 1/sqrt(channels) keeps its old value. Only the N of a mean over the pruned axis is updated, if
/// the mean is part of an operator that mixes the channels, as in a layer norm; otherwise the
/// original with zeros still divides by all of them.
class Freezer {
 public:
  Freezer(const Graph& graph, const Facts& before, const Facts& after, const Coupling& coupling)
      : graph_(graph), before_(before), after_(after), coupling_(coupling) {}

  void freeze(PatchView& view) const {
    const Node& node = view.before.node();
    const OpSchema* schema = followed_schema(node);
    // Operands of irregular rules are shapes and are updated; trip counts of loops are not.
    if (schema != nullptr && schema->line.empty() && !node.has_subgraph) return;
    for (int i = 0; i < view.before.inputs(); ++i) {
      const ValueId value = view.before.input(i);
      if (value == kNone || !before_.computed[value]) continue;
      const auto& was = before_.constants[value];
      const auto& is = after_.constants[value];
      if (!was || !is || *was == *is || counts_a_sum(view, i)) continue;
      view.set_input(i, "operand " + std::to_string(i), *was);
    }
  }

 private:
  /// Is the node's other operand a sum over an axis that shrank and whose channels mix?
  bool counts_a_sum(const PatchView& view, int operand) const {
    for (int i = 0; i < view.before.inputs(); ++i) {
      if (i == operand || view.before.input(i) == kNone) continue;
      const NodeId producer = graph_.value(view.before.input(i)).producer;
      if (producer == kNone || !has_trait(graph_.node(producer), kReduces)) continue;
      if (shrank_and_mixes(graph_.node(producer).inputs[0])) return true;
    }
    return false;
  }

  bool shrank_and_mixes(ValueId value) const {
    const auto& was = before_.shapes[value];
    const auto& is = after_.shapes[value];
    if (!was || !is) return false;
    for (size_t d = 0; d < was->size(); ++d) {
      const DimClassId dim_class = coupling_.dim_class_of(value, static_cast<int>(d));
      if ((*was)[d] == (*is)[d] || dim_class == kNone) continue;
      const auto channels = coupling_.channels(dim_class);
      if (std::ranges::any_of(channels, [&](const ChannelId& c) {
            return c.group != kNone && coupling_.groups[c.group].mixes;
          })) {
        return true;
      }
    }
    return false;
  }

  const Graph& graph_;
  const Facts& before_;
  const Facts& after_;
  const Coupling& coupling_;
};

/// Did the shape of an operand or result of the node change?
bool touched(const Node& node, const Facts& before, const Facts& after) {
  const auto changed = [&](ValueId v) {
    if (v == kNone) return false;
    return before.shapes[v] != after.shapes[v] ||
           (before.computed[v] && before.constants[v] != after.constants[v]);
  };
  return std::ranges::any_of(node.inputs, changed) || std::ranges::any_of(node.outputs, changed);
}

/// Lists computed from sizes must keep their length, which determines the rank of their reader's
/// result. @throws UnsupportedError
void want_same_lengths(const NodeView& before, const NodeView& after) {
  for (int i = 0; i < before.inputs(); ++i) {
    const HostTensor* was = before.constant(i);
    const HostTensor* is = after.constant(i);
    if (was != nullptr && is != nullptr && was->count() != is->count()) {
      throw UnsupportedError("a list of another length would be read");
    }
  }
}

}  // namespace

std::vector<Patch> find_patches(const Graph& graph, const Facts& facts, const Coupling& coupling,
                                const AxisMasks& masks, std::vector<NodeId>& refused) {
  Facts after{predict_shapes(facts, coupling, masks), {}, facts.computed};
  after.constants = reevaluate(graph, facts, after.shapes);

  IdVector<DimClassId, std::vector<int64_t>> kept_of_dim_class;
  for (const DimClassId dim_class : coupling.dim_classes()) {
    kept_of_dim_class.push_back(kept_indices(coupling, masks, dim_class));
  }
  const std::function<const std::vector<int64_t>*(ValueId, int)> kept =
      [&](ValueId value, int dim) -> const std::vector<int64_t>* {
    const DimClassId dim_class = coupling.dim_class_of(value, dim);
    if (dim_class == kNone || kept_of_dim_class[dim_class].empty()) return nullptr;
    return &kept_of_dim_class[dim_class];
  };

  const Freezer freezer(graph, facts, after, coupling);
  std::vector<Patch> patches;
  for (const NodeId n : graph.nodes.ids()) {
    const Node& node = graph.nodes[n];
    const bool computed =
        !node.outputs.empty() && node.outputs[0] != kNone && facts.computed[node.outputs[0]];
    const OpSchema* schema = followed_schema(node);
    if (computed || schema == nullptr || !touched(node, facts, after)) continue;
    const NodeView was(graph, node, facts);
    const NodeView is(graph, node, after);
    PatchView view(was, is, kept, patches);
    const auto before = static_cast<std::ptrdiff_t>(patches.size());
    try {
      want_same_lengths(was, is);
      if (schema->patch != nullptr) schema->patch(view);
      patch_bindings(view);
      freezer.freeze(view);
      const auto is_shared = [&](const Patch& patch) { return graph.node(patch.node).calls > 1; };
      if (std::any_of(patches.begin() + before, patches.end(), is_shared)) {
        refused.push_back(n);
      }
    } catch (const Error&) {
      refused.push_back(n);
    }
  }
  if (refused.empty()) refused = graph.source->unwritable(graph, patches);
  return patches;
}

}  // namespace parsimony
