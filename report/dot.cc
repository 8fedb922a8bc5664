#include <array>
#include <cmath>
#include <cstdio>

#include "parsimony/report/explain.h"
#include "parsimony/report/groups_impl.h"

namespace parsimony {
namespace {

constexpr std::string_view kUnprunedColour = "#e8e8e8";
constexpr size_t kMostStripes = 6;

/// Pale colours that differ the more, the closer two groups are: hues a golden ratio apart.
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

/// A quoted DOT string. Backslashes are doubled, so that \N and its like in names stay as they are.
std::string dot_string(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
  }
  return out + '"';
}

/// The same with parts below each other.
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

bool is_computed(const Facts& facts, ValueId value) { return facts.computed[value]; }

void draw_node(const Graph& graph, const Facts& facts, const Coupling& coupling,
               const DimClassGroups& groups, NodeId n, std::string& out) {
  const Node& node = graph.nodes[n];
  ValueId first = kNone;
  for (const ValueId v : node.outputs) {
    if (v != kNone && first == kNone) first = v;
  }
  if (first != kNone && is_computed(facts, first)) return;
  const std::vector<GroupId> here = groups.of_outputs(node);
  out += "  n" + std::to_string(n.number()) + " [label=" +
         quoted_lines({label_of(graph, node), node.op,
                       first == kNone ? std::string() : shape_of(facts, first),
                       joined(ids_of(coupling, here))}) +
         ", " + fill_of(here) + "];\n";
  for (const ValueId v : node.inputs) {
    if (v == kNone || is_computed(facts, v)) continue;
    const Value& value = graph.value(v);
    const std::string to = " -> n" + std::to_string(n.number()) + ";\n";
    if (value.producer != kNone) out += "  n" + std::to_string(value.producer.number()) + to;
    if (value.is_input) out += "  v" + std::to_string(v.number()) + to;
  }
  for (const BodyId b : node.bodies) {  // what runs inside leads to the node
    for (const ValueId v : graph.bodies[b].outputs) {
      const NodeId producer = graph.value(v).producer;
      if (producer == kNone || is_computed(facts, v)) continue;
      out += "  n" + std::to_string(producer.number()) + " -> n" + std::to_string(n.number()) +
             " [style=dashed];\n";
    }
  }
}

}  // namespace

std::string to_dot(const Graph& graph, const Facts& facts, const Coupling& coupling) {
  const DimClassGroups groups(coupling);
  std::string out = "digraph network {\n  node [shape=box, fontname=\"sans-serif\"];\n";
  const auto draw_end = [&](ValueId v) {
    out += "  v" + std::to_string(v.number()) +
           " [shape=ellipse, label=" + quoted_lines({graph.value(v).name, shape_of(facts, v)}) +
           "];\n";
  };
  for (const ValueId v : graph.inputs) draw_end(v);
  for (const NodeId n : graph.nodes.ids()) draw_node(graph, facts, coupling, groups, n, out);
  for (const ValueId v : graph.outputs) {
    const Value& value = graph.value(v);
    if (value.producer == kNone || is_computed(facts, v)) continue;
    if (!value.is_input) draw_end(v);
    out += "  n" + std::to_string(value.producer.number()) + " -> v" + std::to_string(v.number()) +
           ";\n";
  }
  return out + "}\n";
}

}  // namespace parsimony
