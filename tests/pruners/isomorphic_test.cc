#include <gtest/gtest.h>

#include "parsimony/pruners/candidates.h"
#include "tests/pruners/network.h"

namespace parsimony {
namespace {

using test::Builder;
using test::group_of;
using test::member;

/// conv, then relu or sigmoid, then the conv that reads it; its group.
struct Blocks {
  Builder b;
  Coupling coupling;
  ValueId last = b.input("x", {1, 4, 1, 1});

  Blocks() { coupling.dim_class_begin = {0}; }

  void add(const std::string& activation, int out, bool reverse_names = false) {
    const std::string name = std::to_string(b.graph.nodes.size());
    const auto n = static_cast<int>(b.graph.nodes.size());
    const ValueId w1 = b.floats("w1" + name, {out, 4, 1, 1});
    const ValueId w2 = b.floats("w2" + name, {4, out, 1, 1});
    ValueId y = b.node("Conv", {last, w1}, "a" + name);
    y = b.node(activation, {y}, "b" + name);
    last = b.node("Conv", {y, w2}, "c" + name);
    std::vector<Member> members = {member(w1, n, 0, out), member(w2, n + 2, 1, out, Role::kIn)};
    if (reverse_names) std::swap(members[0], members[1]);
    const std::string id = "g" + std::to_string(coupling.groups.size());
    const GroupId g = coupling.groups.push_back(group_of(std::move(members), out, id));
    for (int c = 0; c < out; ++c) coupling.element_channel.push_back({g, c});
    coupling.dim_class_begin.push_back(static_cast<int64_t>(coupling.element_channel.size()));
    coupling.dim_class_nodes.push_back({NodeId(n), NodeId(n + 1), NodeId(n + 2)});
  }
};

TEST(SubgraphShapes, DoNotDependOnSizesNorOnOrder) {
  Blocks net;
  net.add("Relu", 4);
  net.add("Relu", 8, true);
  net.add("Sigmoid", 8);
  finish(net.b.graph);
  const PerGroup<uint64_t> shapes = subgraph_shapes(net.b.graph, net.coupling);
  EXPECT_EQ(shapes[GroupId(0)], shapes[GroupId(1)]);
  EXPECT_NE(shapes[GroupId(0)], shapes[GroupId(2)]);
}

TEST(SubgraphShapes, TellRolesAndAxesApart) {
  Blocks net;
  for (int i = 0; i < 3; ++i) net.add("Relu", 4);
  finish(net.b.graph);
  net.coupling.groups[GroupId(1)].members[1].role = Role::kOut;
  net.coupling.groups[GroupId(2)].members[1].axis = 0;
  const PerGroup<uint64_t> shapes = subgraph_shapes(net.b.graph, net.coupling);
  EXPECT_NE(shapes[GroupId(0)], shapes[GroupId(1)]);
  EXPECT_NE(shapes[GroupId(0)], shapes[GroupId(2)]);
  EXPECT_NE(shapes[GroupId(1)], shapes[GroupId(2)]);
}

TEST(SubgraphShapes, SeeHowNodesAreJoined) {
  // The same operators, once in a row and once side by side.
  Builder b;
  Coupling coupling;
  coupling.dim_class_begin = {0};
  const auto add = [&](bool row) {
    const auto n = static_cast<int>(b.graph.nodes.size());
    const std::string name = std::to_string(n);
    const ValueId w = b.floats("w" + name, {2, 2, 1, 1});
    const ValueId y = b.node("Conv", {b.input("x" + name, {1, 2, 1, 1}), w}, "a" + name);
    const ValueId first = b.node("Relu", {y}, "b" + name);
    b.node("Relu", {row ? first : y}, "c" + name);
    const GroupId g = coupling.groups.push_back(group_of({member(w, n, 0, 2)}, 2));
    for (int c = 0; c < 2; ++c) coupling.element_channel.push_back({g, c});
    coupling.dim_class_begin.push_back(static_cast<int64_t>(coupling.element_channel.size()));
    coupling.dim_class_nodes.push_back({NodeId(n), NodeId(n + 1), NodeId(n + 2)});
  };
  add(true);
  add(false);
  add(true);
  finish(b.graph);
  const PerGroup<uint64_t> shapes = subgraph_shapes(b.graph, coupling);
  EXPECT_NE(shapes[GroupId(0)], shapes[GroupId(1)]);
  EXPECT_EQ(shapes[GroupId(0)], shapes[GroupId(2)]);
}

}  // namespace
}  // namespace parsimony
