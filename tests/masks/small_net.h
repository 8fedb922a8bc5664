// Networks of a few nodes by hand, and what the solver finds in them, for tests of one law each.
#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "parsimony/graph/infer.h"
#include "parsimony/masks/coupling.h"
#include "tests/graph/builder.h"
#include "tests/masks/coupling_text.h"

namespace parsimony::test {

using Texts = std::vector<std::string>;
using test::Attributes;

/// A graph with what is known of its values and how its dimensions depend on each other.
struct Solved {
  const Graph& graph;
  Facts facts;
  Coupling coupling;

  /// A group each: "g0: 8 channels; W1[1] out; W2[0] in", with what a removed channel leaves.
  Texts groups() const {
    Texts texts;
    for (const Group& group : coupling.groups) {
      std::ostringstream out;
      print(graph, group, out);
      std::string text = out.str();
      text.pop_back();
      for (size_t at; (at = text.find("\n  ")) != std::string::npos;) text.replace(at, 3, "; ");
      std::string flags;
      if (!group.zero) flags += ", not zero without its weights";
      if (!group.weighted) flags += ", summed without a weight";
      texts.push_back(text.insert(text.find(';'), flags));
    }
    return texts;
  }

  /// Why the dimension "W2[1]" is not prunable, and how much of it; "" if all of it is.
  std::string constraint(const std::string& name) const {
    for (const Obstacle& obstacle : coupling.obstacles) {
      if (dimension(graph, obstacle.value, obstacle.dim) != name) continue;
      std::ostringstream out;
      print(graph, obstacle, out);
      std::string text = out.str();
      text.pop_back();
      return text.substr(2 + name.size() + 2);
    }
    return "";
  }
};

class SmallNet : public test::Builder {
 public:
  auto x(Shape dims) { return input("x", std::move(dims)); }

  /// x W, named `name`; the weight is W + `name`.
  template <typename Id>
  Id linear(Id x, const std::string& name, Shape dims) {
    return node("MatMul", {x, floats("W" + name, std::move(dims))}, name);
  }

  template <typename Id>
  Id conv(Id x, const std::string& name, Shape dims, Attributes attributes = {}) {
    return node("Conv", {x, floats("W" + name, std::move(dims))}, name, std::move(attributes));
  }

  auto integers(const std::string& name, const std::vector<int64_t>& elements) {
    return weight(name, elements, {static_cast<int64_t>(elements.size())}, DType::kInt64);
  }

  template <typename Id>
  Id reshape(Id x, const std::string& name, const std::vector<int64_t>& shape) {
    return node("Reshape", {x, integers(name + "_shape", shape)}, name);
  }

  /// Indices [begin, end) of the last axis.
  template <typename Id>
  Id slice(Id x, const std::string& name, int64_t begin, int64_t end) {
    return node("Slice",
                {x, integers(name + "_begin", {begin}), integers(name + "_end", {end}),
                 integers(name + "_axis", {-1})},
                name);
  }

  /// The graph is complete: nothing may be added afterwards.
  template <typename Id>
  Solved solve(Id result, const CouplingOptions& options = {}) {
    output(result);
    finish(graph);
    Facts facts = infer(graph);
    Coupling coupling = couple(graph, facts, options);
    return {graph, std::move(facts), std::move(coupling)};
  }
};

}  // namespace parsimony::test
