#include <array>
#include <cmath>
#include <cstdio>

#include "parsimony/report/explain.h"
#include "parsimony/report/network/drawing_impl.h"

namespace parsimony {
namespace {

class Drawer {
 public:
  Drawer(const Graph& graph, const Facts& facts, const DimClassGroups& groups)
      : graph_(graph),
        facts_(facts),
        groups_(groups),
        box_of_node_(graph.nodes.size(), kNone),
        box_of_input_(graph.values.size(), kNone) {}

  Drawing run() {
    for (const ValueId v : graph_.inputs) box_of_input_[v] = add({kNone, v, {}});
    for (const NodeId n : graph_.nodes.ids()) draw(n);
    for (const ValueId v : graph_.outputs) {
      const NodeId producer = graph_.value(v).producer;
      if (producer == kNone || facts_.computed[v]) continue;
      const int known = box_of_input_[v];
      connect(box_of_node_[producer], known != kNone ? known : add({kNone, v, {}}));
    }
    return std::move(drawing_);
  }

 private:
  int add(DrawnBox box) {
    drawing_.boxes.push_back(std::move(box));
    return static_cast<int>(drawing_.boxes.size()) - 1;
  }

  void connect(int from, int to, bool inside = false) {
    if (from != kNone) drawing_.lines.push_back({from, to, inside});
  }

  void draw(NodeId n) {
    const Node& node = graph_.nodes[n];
    ValueId first = kNone;
    for (const ValueId v : node.outputs) {
      if (v != kNone && first == kNone) first = v;
    }
    if (first != kNone && facts_.computed[first]) return;
    const int box = add({n, first, groups_.of_outputs(node)});
    box_of_node_[n] = box;
    for (const ValueId v : node.inputs) {
      if (v == kNone || facts_.computed[v]) continue;
      const Value& value = graph_.value(v);
      if (value.producer != kNone) connect(box_of_node_[value.producer], box);
      if (value.is_input) connect(box_of_input_[v], box);
    }
    for (const BodyId b : node.bodies) {  // nodes of bodies lead to the node
      for (const ValueId v : graph_.bodies[b].outputs) {
        const NodeId producer = graph_.value(v).producer;
        if (producer != kNone && !facts_.computed[v]) connect(box_of_node_[producer], box, true);
      }
    }
  }

  const Graph& graph_;
  const Facts& facts_;
  const DimClassGroups& groups_;
  IdVector<NodeId, int> box_of_node_;
  IdVector<ValueId, int> box_of_input_;
  Drawing drawing_;
};

}  // namespace

Drawing drawing_of(const Graph& graph, const Facts& facts, const DimClassGroups& groups) {
  return Drawer(graph, facts, groups).run();
}

namespace {

constexpr std::string_view kUnprunedColour = "#e8e8e8";
constexpr size_t kMostStripes = 6;

/// Returns a pale colour; neighbouring groups differ most: hues are a golden ratio apart.
std::string colour_of(GroupId group) {
  constexpr double kGolden = 0.618033988749895;
  constexpr double kPale = 0.55;  // of 1; the darkest of the three channels
  const double hue = std::fmod(group.number() * kGolden, 1.0);
  std::array<unsigned, 3> rgb{};
  for (size_t c = 0; c < rgb.size(); ++c) {
    const double distance =
        std::fabs(std::fmod(hue * 6 + 6 - 2 * static_cast<double>(c), 6.0) - 3) - 1;
    const double level = distance < 0 ? 0 : distance > 1 ? 1 : distance;
    rgb[c] = static_cast<unsigned>(std::lround(255 * (kPale + (1 - kPale) * level)));
  }
  char text[16];
  std::snprintf(text, sizeof text, "#%02x%02x%02x", rgb[0], rgb[1], rgb[2]);
  return text;
}

/// Returns a quoted DOT string. Backslashes are doubled, so that \N and the like in names are
/// literal.
std::string dot_string(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
  }
  return out + '"';
}

/// Returns a quoted DOT string with one part per line.
std::string quoted_lines(const std::vector<std::string>& parts) {
  std::string out = "\"";
  for (const std::string& part : parts) {
    if (part.empty()) continue;
    const std::string inner = dot_string(part);
    if (out.size() > 1) out += "\\n";
    out.append(inner, 1, inner.size() - 2);
  }
  return out + '"';
}

std::string fill_of(const std::vector<GroupId>& groups) {
  if (groups.empty()) return "style=filled, fillcolor=" + dot_string(kUnprunedColour);
  std::string colours;
  for (size_t i = 0; i < groups.size() && i < kMostStripes; ++i) {
    if (i > 0) colours += ':';
    colours += colour_of(groups[i]);
  }
  return (groups.size() == 1 ? "style=filled, fillcolor=" : "style=striped, fillcolor=") +
         dot_string(colours);
}

std::string joined(const std::vector<std::string>& words) {
  std::string out;
  for (const std::string& word : words) out += (out.empty() ? "" : " ") + word;
  return out;
}

std::string shape_of(const Facts& facts, ValueId value) {
  const auto& shape = facts.shapes[value];
  return shape ? to_string(*shape) : std::string();
}

/// Returns "n4" for a node, "v7" for an input or output.
std::string dot_id(const DrawnBox& box) {
  return box.node != kNone ? "n" + std::to_string(box.node.number())
                           : "v" + std::to_string(box.value.number());
}

std::string dot_box(const Graph& graph, const Facts& facts, const Coupling& coupling,
                    const DrawnBox& box) {
  const std::string shape = box.value == kNone ? std::string() : shape_of(facts, box.value);
  if (box.node == kNone) {
    return "shape=ellipse, label=" + quoted_lines({graph.value(box.value).name, shape});
  }
  const Node& node = graph.node(box.node);
  return "label=" +
         quoted_lines(
             {label_of(graph, node), node.op, shape, joined(ids_of(coupling, box.groups))}) +
         ", " + fill_of(box.groups);
}

}  // namespace

std::string to_dot(const Graph& graph, const Facts& facts, const Coupling& coupling) {
  const Drawing drawing = drawing_of(graph, facts, DimClassGroups(coupling));
  std::string out = "digraph network {\n  node [shape=box, fontname=\"sans-serif\"];\n";
  for (const DrawnBox& box : drawing.boxes) {
    out += "  " + dot_id(box) + " [" + dot_box(graph, facts, coupling, box) + "];\n";
  }
  for (const DrawnLine& line : drawing.lines) {
    out += "  " + dot_id(drawing.boxes[line.from]) + " -> " + dot_id(drawing.boxes[line.to]) +
           (line.inside ? " [style=dashed];\n" : ";\n");
  }
  return out + "}\n";
}

}  // namespace parsimony
