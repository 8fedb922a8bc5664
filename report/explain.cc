#include "parsimony/report/explain.h"

#include <algorithm>
#include <set>

#include "parsimony/base/errors.h"
#include "parsimony/graph/operators/schema.h"
#include "parsimony/graph/weights.h"
#include "parsimony/report/groups_impl.h"
#include "parsimony/report/parts_impl.h"
#include "parsimony/report/text.h"
#include "parsimony/speedup/scales.h"

namespace parsimony {
namespace {

ConfigError report_unknown_group(std::string_view id, std::span<const std::string> known) {
  constexpr size_t kShown = 8;
  const std::string text = "there is no group \"" + std::string(id) + "\"";
  if (known.empty()) return ConfigError(text + ": no axis of this network can shrink");
  return ConfigError(text + "; there are " + listed({known.begin(), known.end()}, kShown));
}

constexpr size_t kMostGroups = 3;

std::string number_text(double value) { return formatted("%.6g", value); }

std::string place_text(const ScaleRow& row) {
  const std::string name = row.what.empty() ? "constant" : printable(row.what);
  return (row.attribute ? "attribute " + name : name) + " of " + printable(row.node);
}

}  // namespace

ScaleRow row_of(const Graph& graph, const Coupling& coupling, const Scale& scale) {
  ScaleRow row;
  row.node = label_of(graph, graph.node(scale.node));
  row.attribute = scale.input < 0;
  row.what = row.attribute ? scale.what : scale.tensor;
  row.value = scale.value.number(0);
  row.encodes = formula(scale, scale.size);
  row.size = scale.size;
  for (const GroupId g : scale.groups) {
    row.groups.push_back(coupling.groups[g].id);
  }
  return row;
}

ScaleRow row_of(const Graph& graph, const Coupling& coupling, const CutScale& cut, bool patched) {
  ScaleRow row = row_of(graph, coupling, cut.scale);
  row.cut = {cut.kept, cut.would_be.number(0), patched};
  return row;
}

void describe(JsonWriter& json, const ScaleRow& row) {
  json("node", row.node)(row.attribute ? "attribute" : "tensor", row.what)("value", row.value);
  json("encodes", row.encodes)("size", row.size)("groups", row.groups);
  if (!row.cut) return;
  json("kept", row.cut->kept)("would_be", row.cut->would_be)("patched", row.cut->patched);
}

std::string scales_text(const std::vector<ScaleRow>& rows) {
  if (rows.empty()) return "";
  using enum Table::Align;
  const bool cut = rows.front().cut.has_value();
  std::vector<std::string> head = {"scale", "value", "encodes", "of groups"};
  std::vector<Table::Align> align = {kLeft, kRight, kLeft, kLeft};
  if (cut) {
    head.insert(head.end(), {"kept", "would be"});
    align.insert(align.end(), {kRight, kRight});
  }
  Table table(head, align);
  for (const ScaleRow& row : rows) {
    std::vector<std::string> cells = {place_text(row), number_text(row.value), row.encodes,
                                      listed(row.groups, kMostGroups)};
    if (cut) {
      cells.push_back(std::to_string(row.cut->kept));
      cells.push_back(number_text(row.cut->would_be));
    }
    table.add(std::move(cells));
  }
  return table.text();
}

std::string scales_text(const std::vector<ScaleRow>& rows, bool all) {
  if (rows.empty()) return "";
  const bool patched = rows.front().cut && rows.front().cut->patched;
  const std::string text = counted(static_cast<int64_t>(rows.size()), "scale") +
                           " of pruned sizes " +
                           (patched ? "updated.\n" : "unchanged; --rescale updates them.\n");
  return text + (all ? "\n" + scales_text(rows) : "");
}

namespace {

constexpr size_t kMostTies = 12;

bool reads(const Graph& graph, const Node& node, std::string_view tensor) {
  return std::any_of(node.inputs.begin(), node.inputs.end(), [&](ValueId v) {
    return v != kNone && graph.value(v).weight != kNone && graph.weight_of(v).name == tensor;
  });
}

ConfigError unknown_node(const Graph& graph, const std::string& name) {
  std::vector<std::string> known;
  for (const Node& node : graph.nodes) {
    known.push_back(label_of(graph, node));
    known.push_back(key_of(graph, node));
  }
  for (const Weight& weight : graph.weights) known.push_back(weight.name);
  return ConfigError("the network has no node or weight named ", in_quotes(name), ".",
                     did_you_mean(name, known));
}

std::set<NodeId> find_nodes(const Graph& graph, const std::string& name) {
  std::set<NodeId> found;
  for (const NodeId n : graph.nodes.ids()) {
    const Node& node = graph.nodes[n];
    if (node.name == name || key_of(graph, node) == name || reads(graph, node, name)) {
      found.insert(n);
    }
  }
  if (found.empty()) throw unknown_node(graph, name);
  return found;
}

void check_group(const Coupling& coupling, const std::string& id) {
  std::vector<std::string> known;
  for (const Group& group : coupling.groups) known.push_back(group.id);
  if (std::find(known.begin(), known.end(), id) == known.end()) {
    throw report_unknown_group(id, known);
  }
}

GroupRow row_of(const Graph& graph, const Group& group, const std::vector<NodeId>& ties) {
  GroupRow row{group.id, group.size, group.granularity, group.mixes, group.mixes_at, {}, {}};
  for (const Member& member : group.members) {
    row.members.push_back({graph.weight_of(member.value).name, member.axis,
                           std::string(name_of(member.role)), member.size,
                           static_cast<int64_t>(member.indices.size()),
                           label_of(graph, graph.node(member.node))});
  }
  for (const NodeId n : ties) {
    const Node& node = graph.node(n);
    row.ties.push_back(label_of(graph, node) + " (" + node.op + ")");
  }
  return row;
}

/// Returns whether an obstacle needs no explanation: kernel extents are never pruned, and vectors
/// follow their layer.
bool speaks_for_itself(const Graph& graph, const Obstacle& obstacle) {
  const Shape& dims = graph.weight_of(obstacle.value).dims;
  return obstacle.structural ||
         std::count_if(dims.begin(), dims.end(), [](int64_t d) { return d > 1; }) < 2;
}

bool is_read_by(const Graph& graph, ValueId value, const std::set<NodeId>& nodes) {
  const auto& uses = graph.value(value).uses;
  return std::any_of(uses.begin(), uses.end(),
                     [&](const Use& use) { return nodes.contains(use.node); });
}

ObstacleRow row_of(const Graph& graph, const Obstacle& obstacle) {
  const Weight& weight = graph.weight_of(obstacle.value);
  return {weight.name,
          obstacle.dim,
          weight.dims[obstacle.dim],
          obstacle.pinned,
          obstacle.node == kNone ? std::string() : label_of(graph, graph.node(obstacle.node)),
          obstacle.reason};
}

std::string axis_text(const std::string& tensor, int axis) {
  return printable(tensor) + "[" + std::to_string(axis) + "]";
}

std::string group_text(const GroupRow& group, bool all) {
  std::string text =
      group.id + ": " + counted(group.size, group.granularity == "channel" ? "channel" : "slice");
  if (group.granularity != "channel") text += ", by " + group.granularity;
  if (group.mixes) text += ", mixes at " + printable(group.mixes_at);
  using enum Table::Align;
  Table table({"weight", "role", "indices", "read by"}, {kLeft, kLeft, kRight, kLeft});
  for (const MemberRow& member : group.members) {
    table.add({axis_text(member.tensor, member.axis), member.role,
               std::to_string(member.indices) + " of " + std::to_string(member.size),
               printable(member.node)});
  }
  text += "\n" + table.text(2);
  std::vector<std::string> ties;
  for (const std::string& tie : group.ties) ties.push_back(printable(tie));
  if (!all && ties.size() > kMostTies) {
    const size_t more = ties.size() - kMostTies;
    ties.resize(kMostTies);
    ties.push_back("and " + std::to_string(more) + " more (-v)");
  }
  constexpr std::string_view kTied = "  tied by: ";
  return text + std::string(kTied) + wrapped(ties, kTied.size(), kTied.size()) + "\n\n";
}

}  // namespace

std::string why_no_axis(const Graph& graph) {
  bool any = false;
  for (const Value& value : graph.values) {
    if (!is_weight(graph, value)) continue;
    any = true;
    const Shape& dims = graph.weight(value.weight).dims;
    if (std::ranges::any_of(dims, [](int64_t size) { return size > 1; })) return {};
  }
  if (any) return "no weight of this network has an axis longer than 1";
  const auto unknown = std::ranges::find_if(
      graph.nodes, [](const Node& node) { return find_schema(node.domain, node.op) == nullptr; });
  if (unknown == graph.nodes.end()) return "this network has no weights";
  return "no weights are seen: they may be packed into " + unknown->op +
         ", an unknown operator, at " + label_of(graph, *unknown);
}

Explanation explain(const Graph& graph, const Facts& facts, const Coupling& coupling,
                    const ExplainFilter& filter) {
  if (!filter.group.empty()) check_group(coupling, filter.group);
  std::set<NodeId> nodes;
  if (!filter.node.empty()) nodes = find_nodes(graph, filter.node);

  const auto ties = DimClassGroups(coupling).ties();
  Explanation result;
  for (const GroupId g : coupling.groups.ids()) {
    const Group& group = coupling.groups[g];
    if (!filter.group.empty() && group.id != filter.group) continue;
    const bool meets =
        std::any_of(ties[g].begin(), ties[g].end(), [&](NodeId n) { return nodes.contains(n); });
    if (!nodes.empty() && !meets) continue;
    result.groups.push_back(row_of(graph, group, ties[g]));
  }
  for (const Obstacle& obstacle : coupling.obstacles) {
    if (!filter.group.empty()) break;  // unprunable axes are in no group
    if (!nodes.empty() && !is_read_by(graph, obstacle.value, nodes)) continue;
    if (!filter.all && speaks_for_itself(graph, obstacle)) continue;
    result.unpruned_dims.push_back(row_of(graph, obstacle));
  }
  for (const Scale& scale : find_scales(graph, facts, coupling)) {
    ScaleRow row = row_of(graph, coupling, scale);
    const auto& groups = row.groups;
    const bool of_group = std::find(groups.begin(), groups.end(), filter.group) != groups.end();
    if (!filter.group.empty() && !of_group) continue;
    if (!nodes.empty() && !nodes.contains(scale.node)) continue;
    result.scales.push_back(std::move(row));
  }
  if (result.groups.empty() && result.unpruned_dims.empty()) result.nothing = why_no_axis(graph);
  return result;
}

std::string to_text(const Explanation& explanation, bool all) {
  std::string text;
  if (!explanation.nothing.empty()) text = printable(explanation.nothing) + ".\n";
  for (const GroupRow& group : explanation.groups) text += group_text(group, all);
  if (explanation.unpruned_dims.empty()) return text + scales_text(explanation.scales);
  using enum Table::Align;
  Table table({"cannot shrink", "size", "why", "node"}, {kLeft, kRight, kLeft, kLeft});
  for (const ObstacleRow& row : explanation.unpruned_dims) {
    const std::string part =
        row.pinned < row.size ? std::to_string(row.pinned) + " of them: " : std::string();
    table.add({axis_text(row.tensor, row.axis), std::to_string(row.size),
               part + printable(row.reason), printable(row.node)});
  }
  const std::string scales = scales_text(explanation.scales);
  return text + table.text() + (scales.empty() ? "" : "\n" + scales);
}

void describe(JsonWriter& json, const MemberRow& member) {
  json("tensor", member.tensor)("axis", member.axis)("role", member.role)("size", member.size);
  json("indices", member.indices)("node", member.node);
}

void describe(JsonWriter& json, const GroupRow& group) {
  json("id", group.id)("size", group.size)("granularity", group.granularity)("mixes", group.mixes);
  if (group.mixes) json("mixes_at", group.mixes_at);
  json("members", group.members)("ties", group.ties);
}

void describe(JsonWriter& json, const ObstacleRow& row) {
  json("tensor", row.tensor)("axis", row.axis)("size", row.size)("pinned", row.pinned);
  json("node", row.node.empty() ? Json() : Json(row.node))("reason", row.reason);
}

void describe(JsonWriter& json, const Explanation& explanation) {
  json("groups", explanation.groups)("unpruned_dims", explanation.unpruned_dims);
  json("scales", explanation.scales);
  if (!explanation.nothing.empty()) json("nothing", explanation.nothing);
}

std::string to_json(const Explanation& explanation) {
  return document_of("parsimony_explain", 2, explanation);
}

}  // namespace parsimony
