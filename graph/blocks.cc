#include "parsimony/graph/blocks.h"

#include <absl/container/flat_hash_map.h>

#include <algorithm>
#include <optional>
#include <set>
#include <string>

#include "parsimony/base/ranges.h"
#include "parsimony/graph/attributes.h"
#include "parsimony/graph/operators/schema.h"

namespace parsimony {
namespace {

/// Two dimensions or more that are not 1.
bool is_matrix(const Shape& dims) {
  return std::ranges::count_if(dims, [](int64_t d) { return d > 1; }) > 1;
}

/// Does the node add to its first operand what it scatters?
bool scatters_sums(const Node& node) {
  return has_trait(node, kScatters) && node.inputs.size() == 3 && !contains(node.inputs, kNone) &&
         attr(node, "reduction", "none") == "add";
}

}  // namespace

std::optional<Branch> BranchFinder::with(NodeId node) {
  constexpr int kMostNodes = 256;
  std::set<NodeId> reached = {node};
  int seen = 0;
  for (auto at = reached.begin(); at != reached.end() && ++seen <= kMostNodes; ++at) {
    for (const int kept : {0, 1}) {
      auto branch = branch_at(*at, kept);
      if (branch && std::ranges::binary_search(branch->nodes, node) && has_layer(*branch)) {
        return branch;
      }
    }
    for (const ValueId v : graph_.node(*at).outputs) {
      if (v == kNone) continue;
      for (const Use& use : graph_.value(v).uses) reached.insert(use.node);
    }
  }
  return {};
}

std::optional<Branch> BranchFinder::branch_at(NodeId add, int kept) {
  const Node& node = graph_.node(add);
  if (node.calls > 0 || !adds_activation(node, kept)) return {};
  return Branch{add, kept, needed_only_by(add, kept)};
}

bool adds_branches(const Node& node) {
  return scatters_sums(node) || (has_trait(node, kAdds) && node.inputs.size() == 2);
}

ValueId added_value(const Graph& graph, const Branch& branch) {
  const Node& add = graph.node(branch.add);
  return add.inputs[scatters_sums(add) ? 2 : 1 - branch.kept_input];
}

/// Is the result internal to the network, and the operand plus another one of its shape, or plus
/// what is scattered into it?
bool BranchFinder::adds_activation(const Node& node, int kept) const {
  if (!adds_branches(node)) return false;
  const auto& shape = facts_.shapes[node.outputs[0]];
  const Value& output = graph_.value(node.outputs[0]);
  if (!shape || shape->empty() || output.is_output || output.captured ||
      facts_.shapes[node.inputs[kept]] != shape) {
    return false;
  }
  if (scatters_sums(node)) return kept == 0;
  const ValueId branch = node.inputs[1 - kept];
  return node.inputs[kept] != branch && graph_.value(branch).weight == kNone &&
         !facts_.computed[branch] && facts_.shapes[branch] == shape;
}

/// The nodes before the other operands that would be unused without the addition; ascending.
std::vector<NodeId> BranchFinder::needed_only_by(NodeId add, int kept) {
  ++stamp_;
  mark_[add] = stamp_;
  std::vector<NodeId> found;
  std::vector<ValueId> work = graph_.node(add).inputs;
  work.erase(work.begin() + kept);
  while (!work.empty()) {
    const NodeId n = work.back() == kNone ? kNone : graph_.value(work.back()).producer;
    work.pop_back();
    if (n == kNone || mark_[n] == stamp_ || !inside(n, add, kept)) continue;
    mark_[n] = stamp_;
    found.push_back(n);
    for (const ValueId v : graph_.node(n).inputs) {
      if (v != kNone) work.push_back(v);
    }
  }
  std::ranges::sort(found);
  return found;
}

/// Nothing but marked nodes reads the node's outputs. Looked at again for each of its readers, so
/// that the last of them to be marked finds it.
bool BranchFinder::inside(NodeId n, NodeId add, int kept) const {
  const Node& node = graph_.node(n);
  if (node.has_subgraph || node.calls > 0 || node.body != graph_.node(add).body) return false;
  return std::ranges::all_of(node.outputs, [&](ValueId v) {
    if (v == kNone) return true;
    const Value& value = graph_.value(v);
    if (value.is_output || value.captured) return false;
    return std::ranges::all_of(value.uses, [&](const Use& use) {
      return mark_[use.node] == stamp_ && (use.node != add || use.input != kept);
    });
  });
}

int channel_axis(const Graph& graph, const Branch& branch, size_t rank) {
  const bool convolves = std::ranges::any_of(branch.nodes, [&](NodeId n) {
    return schema_of(graph.node(n)).linear.kind == LinearKind::kConvolution;
  });
  return convolves && rank > 1 ? 1 : static_cast<int>(rank) - 1;
}

bool BranchFinder::has_layer(const Branch& branch) const {
  return std::ranges::any_of(branch.nodes, [&](NodeId n) {
    return std::ranges::any_of(graph_.node(n).inputs, [&](ValueId v) {
      const WeightId weight = v == kNone ? kNone : graph_.value(v).weight;
      return weight != kNone && is_matrix(graph_.weight(weight).dims);
    });
  });
}

namespace {

class BlockFinder : BranchFinder {
 public:
  using BranchFinder::BranchFinder;

  std::vector<ResidualBlock> find() {
    std::vector<ResidualBlock> blocks;
    for (const NodeId n : graph_.nodes.ids()) {
      for (const int kept : {0, 1}) {
        auto block = block_at(n, kept);
        if (!block) continue;
        blocks.push_back(std::move(*block));
        break;
      }
    }
    return innermost(std::move(blocks));
  }

 private:
  std::optional<ResidualBlock> block_at(NodeId add, int kept) {
    const Node& node = graph_.node(add);
    auto branch = has_trait(node, kAdds) ? branch_at(add, kept) : std::nullopt;
    if (!branch || branch->nodes.empty()) return {};
    ResidualBlock block{std::move(*branch), node.inputs[kept], node.outputs[0]};
    const bool activation =
        graph_.value(block.input).weight == kNone && !facts_.computed[block.input];
    if (!activation || !has_layer(block) || !reads_input_alone(block)) return {};
    block.channel_axis = channel_axis(graph_, block, facts_.shapes[block.input]->size());
    const auto& uses = graph_.value(block.output).uses;
    block.rectified = !uses.empty() && std::ranges::all_of(uses, [&](const Use& use) {
      return has_trait(graph_.node(use.node), kRectifies);
    });
    return block;
  }

  /// f reads x, and nothing else that depends on x.
  bool reads_input_alone(const ResidualBlock& block) {
    bool reads_x = false;
    std::vector<ValueId> others;
    for (const NodeId n : block.nodes) {
      for (const ValueId v : graph_.node(n).inputs) {
        if (v == kNone) continue;
        const Value& value = graph_.value(v);
        reads_x = reads_x || v == block.input;
        if (value.weight == kNone && v != block.input && value.producer != kNone &&
            !facts_.computed[v] && !std::ranges::binary_search(block.nodes, value.producer)) {
          others.push_back(v);
        }
      }
    }
    return reads_x && (others.empty() || !reaches(block, others));
  }

  bool reaches(const ResidualBlock& block, const std::vector<ValueId>& others) {
    ++stamp_;
    const auto marked = [&](ValueId v) {
      if (v == block.input) return true;
      const NodeId producer = v == kNone ? kNone : graph_.value(v).producer;
      return producer != kNone && mark_[producer] == stamp_;
    };
    NodeId n = graph_.value(block.input).producer;  // kNone: before the first node
    while (++n < block.add) {
      const Node& node = graph_.node(n);
      bool any = std::ranges::any_of(node.inputs, marked);
      if (node.body != kNone) {  // what the owner reads may be an input of the body
        const Node& owner = graph_.node(graph_.bodies[node.body].owner);
        any = any || std::ranges::any_of(owner.inputs, marked);
      }
      for (const BodyId b : node.bodies) {
        const auto& results = graph_.bodies[b].outputs;
        any = any || std::ranges::any_of(results, marked);
      }
      if (any) mark_[n] = stamp_;
    }
    return std::ranges::any_of(others, marked);
  }

  static std::vector<ResidualBlock> innermost(std::vector<ResidualBlock> blocks) {
    std::vector<NodeId> adds;
    for (const ResidualBlock& block : blocks) adds.push_back(block.add);
    std::erase_if(blocks, [&](const ResidualBlock& block) {
      return std::ranges::any_of(
          adds, [&](NodeId add) { return std::ranges::binary_search(block.nodes, add); });
    });
    return blocks;
  }
};

}  // namespace

std::vector<ResidualBlock> residual_blocks(const Graph& graph, const Facts& facts) {
  return BlockFinder(graph, facts).find();
}

namespace {

void check(const Graph& graph, const Node& node, int input) {
  const auto refuse = [&](const std::string& why) {
    throw errors::not_bypassed(label_of(graph, node), why);
  };
  if (node.outputs.size() != 1) refuse("it has several outputs");
  const bool there =
      input >= 0 && input < static_cast<int>(node.inputs.size()) && node.inputs[input] != kNone;
  if (!there) refuse("it has no operand " + std::to_string(input));
  const Value& output = graph.value(node.outputs[0]);
  if (output.is_output) refuse("its result is an output of the network");
  if (output.captured) refuse("its result leaves a subgraph");
}

/// What readers of bypassed nodes read instead.
class Redirection {
 public:
  Redirection(const Graph& graph, std::span<const Bypass> bypasses) {
    for (const auto& [id, input] : bypasses) {
      const Node& node = graph.node(id);
      to_.emplace(node.outputs[0], node.inputs[input]);
    }
  }

  ValueId operator()(ValueId value) const {
    for (auto found = to_.find(value); found != to_.end(); found = to_.find(value)) {
      value = found->second;
    }
    return value;
  }

 private:
  absl::flat_hash_map<ValueId, ValueId> to_;
};

IdVector<ValueId, bool> read_weights(const Graph& graph) {
  IdVector<ValueId, bool> result;
  for (const Value& value : graph.values) {
    result.push_back(value.weight != kNone && !value.uses.empty());
  }
  return result;
}

}  // namespace

IdVector<NodeId, bool> removed_by(const Graph& graph, std::span<const Bypass> bypasses) {
  IdVector<NodeId, bool> removed(graph.nodes.size(), false);
  if (bypasses.empty()) return removed;
  for (const Bypass& one : bypasses) removed[one.node] = true;
  const Redirection shown(graph, bypasses);
  IdVector<ValueId, bool> read(graph.values.size(), false);
  const auto loses_readers = [&](const Node& node) {
    bool was_read = false;  // what nothing read before stays
    for (const ValueId v : node.outputs) {
      if (v == kNone) continue;
      const Value& value = graph.value(v);
      if (read[v] || value.is_output || value.captured) return false;
      was_read = was_read || !value.uses.empty();
    }
    return was_read;
  };
  const auto loses_owner = [&](const Node& node) {
    if (node.body == kNone) return false;
    const NodeId owner = graph.bodies[node.body].owner;
    return owner == kNone || removed[owner];
  };
  for (const NodeId n : graph.nodes.reversed_ids()) {
    const Node& node = graph.nodes[n];
    removed[n] = removed[n] || loses_owner(node) || loses_readers(node);
    if (removed[n]) continue;
    for (const ValueId v : node.inputs) {
      if (v != kNone) read[shown(v)] = true;
    }
  }
  return removed;
}

IdVector<NodeId, NodeId> bypass(Graph& graph, std::span<const Bypass> bypasses) {
  for (const auto& [id, input] : bypasses) check(graph, graph.node(id), input);
  const IdVector<ValueId, bool> was_read = read_weights(graph);
  const IdVector<NodeId, bool> removed = removed_by(graph, bypasses);
  const Redirection shown(graph, bypasses);
  for (Node& node : graph.nodes) {
    for (ValueId& v : node.inputs) v = shown(v);
  }

  IdVector<NodeId, NodeId> numbers(graph.nodes.size(), kNone);
  IdVector<NodeId, Node> nodes;
  nodes.reserve(graph.nodes.size());
  for (const NodeId n : graph.nodes.ids()) {
    if (removed[n]) continue;
    numbers[n] = nodes.push_back(std::move(graph.nodes[n]));
  }
  graph.nodes = std::move(nodes);
  finish(graph);
  for (const ValueId v : graph.values.ids()) {
    Value& value = graph.values[v];
    if (was_read[v] && value.uses.empty() && !value.captured) value.weight = kNone;
  }
  return numbers;
}

UnsupportedError errors::cannot_bypass(std::string_view node) {
  return UnsupportedError("the block of node \"" + std::string(node) +
                          "\" cannot be removed: live modules keep their layers; export it to ONNX "
                          "or TorchScript first");
}

ModelError errors::not_bypassed(std::string_view node, std::string_view why) {
  return ModelError("the block of node \"" + std::string(node) +
                    "\" cannot be removed: " + std::string(why));
}

}  // namespace parsimony
