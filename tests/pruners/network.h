// Groups and their layers by hand, for tests.
#pragma once

#include <string>
#include <vector>

#include "parsimony/masks/coupling.h"
#include "tests/graph/builder.h"

namespace parsimony::test {

/// A member whose channels are the `size` indices of the axis, in order.
inline Member member(ValueId value, NodeId node, int axis, int size, Role role = Role::kOut) {
  Member result{value, node, axis, role, size, {}, {0}};
  for (int i = 0; i < size; ++i) {
    result.indices.push_back(i);
    result.offsets.push_back(i + 1);
  }
  return result;
}

inline Member member(ValueId value, int node, int axis, int size, Role role = Role::kOut) {
  return member(value, NodeId(node), axis, size, role);
}

inline Group group_of(std::vector<Member> members, int size, std::string id = "g0") {
  Group group;
  group.id = std::move(id);
  group.size = size;
  group.members = std::move(members);
  return group;
}

/// A chain of 1x1 convolutions "conv0", "conv1", …; groups[i] is the output of conv<i>, and its one
/// line. `weights[i]` are [out, in] of conv<i>.
struct Chain {
  Builder b;
  Coupling coupling;
  ValueId last = b.input("x", {1, 1, 1, 1});
  std::vector<ValueId> weights;

  Chain() { coupling.dim_class_begin = {0}; }

  void add(const std::vector<float>& elements, int out) {
    const auto in = static_cast<int64_t>(elements.size()) / out;
    const auto n = b.graph.nodes.next_id();
    const int g = n.number();  // of each node there is one group
    const std::string name = "conv" + std::to_string(g);
    weights.push_back(b.weight(name + ".weight", elements, {out, in, 1, 1}, DType::kFloat32));
    last = b.node("Conv", {last, weights.back()}, name);
    const GroupId group = coupling.groups.push_back(
        group_of({member(weights.back(), n, 0, out)}, out, "g" + std::to_string(g)));
    for (int c = 0; c < out; ++c) coupling.element_channel.push_back({group, c});
    coupling.dim_class_begin.push_back(static_cast<int64_t>(coupling.element_channel.size()));
  }

  void finish() {
    parsimony::finish(b.graph);
    coupling.value_dim_classes.resize(b.graph.values.size());
  }
};

}  // namespace parsimony::test
