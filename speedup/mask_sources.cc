// Masks on their way into a plan with exact constants.
#include <algorithm>

#include "parsimony/base/errors.h"
#include "parsimony/graph/operators/schema.h"
#include "parsimony/masks/errors.h"
#include "parsimony/speedup/constants.h"

namespace parsimony {
namespace {

/// Do masked weights make the layer's channel zero? Integers are followed by more, such as scales.
bool is_layer(const Node& node) {
  const Linear& linear = schema_of(node).linear;
  return linear.plain || linear.kind == LinearKind::kContraction ||
         linear.kind == LinearKind::kLookup || linear.kind == LinearKind::kRecurrence;
}

bool is_transposed_for_product(const Graph& graph, const Node& node) {
  if (!has_trait(node, kPermutes)) return false;
  const std::vector<Use>& uses = graph.value(node.outputs.front()).uses;
  return std::ranges::any_of(uses, [&](const Use& use) { return is_layer(graph.node(use.node)); });
}

/// Of matrices, without a bias.
bool is_bare_product(const Node& node) {
  const Linear& linear = schema_of(node).linear;
  return linear.plain && linear.kind == LinearKind::kMatrixProduct && linear.bias < 0;
}

/// The bias of a matrix product, which exporters write as an addition, is part of the layer.
bool produces(const Graph& graph, const Node& node) {
  if (is_layer(node) || is_transposed_for_product(graph, node)) return true;
  if (!has_trait(node, kAdds)) return false;
  return std::ranges::any_of(node.inputs, [&](ValueId v) {
    const NodeId producer = v == kNone ? kNone : graph.value(v).producer;
    return producer != kNone && is_bare_product(graph.node(producer));
  });
}

}  // namespace

std::vector<ElementMask> producer_masks(const Graph& graph, const Coupling& coupling,
                                        const AxisMasks& selection) {
  Coupling producers;
  producers.groups = coupling.groups;
  for (Group& group : producers.groups) {
    const auto other = [&](const Member& m) {
      return m.role != Role::kOut || !produces(graph, graph.node(m.node));
    };
    if (std::ranges::all_of(group.members, other)) {
      std::erase_if(group.members, [](const Member& m) { return m.role != Role::kOut; });
    } else {
      std::erase_if(group.members, other);
    }
  }
  return to_element_masks(graph, producers, selection);
}

void merge_masks(std::vector<ElementMask>& masks, const std::vector<ElementMask>& further) {
  for (const ElementMask& mask : further) {
    const auto same = std::ranges::find_if(
        masks, [&](const ElementMask& other) { return other.tensor == mask.tensor; });
    if (same == masks.end()) {
      masks.push_back(mask);
      continue;
    }
    if (same->dims != mask.dims) {
      throw errors::mask_does_not_fit(mask.tensor, mask.dims, same->dims);
    }
    for (size_t i = 0; i < mask.keep.size(); ++i) same->keep[i] &= mask.keep[i];
  }
}

void check_masks(const Graph& graph, const std::vector<ElementMask>& masks) {
  for (const ElementMask& mask : masks) {
    const auto found =
        std::ranges::find_if(graph.weights, [&](const Weight& w) { return w.name == mask.tensor; });
    if (found == graph.weights.end()) {
      std::vector<std::string> names;
      for (const Weight& weight : graph.weights) names.push_back(weight.name);
      throw ModelError("the masks name tensor ", in_quotes(mask.tensor),
                       ", which the model does not have.", did_you_mean(mask.tensor, names));
    }
    if (found->dims != mask.dims) {
      throw errors::mask_does_not_fit(mask.tensor, mask.dims, found->dims);
    }
  }
}

}  // namespace parsimony
