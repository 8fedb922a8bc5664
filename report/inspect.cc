#include "parsimony/report/inspect.h"

#include <algorithm>

#include "parsimony/graph/operators/linear_form.h"
#include "parsimony/masks/cost.h"
#include "parsimony/masks/memory.h"
#include "parsimony/report/groups_impl.h"
#include "parsimony/report/parts_impl.h"
#include "parsimony/report/text.h"

namespace parsimony {
namespace {

std::string shape_text(const std::optional<Shape>& shape) {
  return shape ? to_string(*shape) : std::string("?");
}

/// Adds the weights that the node reads, and counts those in `to_count` as its parameters.
void add_weights(const Graph& graph, const Node& node, IdVector<WeightId, bool>& to_count,
                 NodeRow& row) {
  for (const ValueId v : node.inputs) {
    if (v == kNone || graph.value(v).weight == kNone) continue;
    const WeightId id = graph.value(v).weight;
    const Weight& weight = graph.weight(id);
    if (is_floating(weight.dtype) || size_of(weight.dtype) == 1) {
      row.weights.emplace_back(weight.name, weight.dims);
    }
    if (!to_count[id]) continue;
    to_count[id] = false;
    row.params += weight.count();
  }
}

bool is_shape_arithmetic(const Facts& facts, const Node& node) {
  return std::all_of(node.outputs.begin(), node.outputs.end(),
                     [&](ValueId v) { return v == kNone || facts.computed[v]; });
}

/// Returns "[64, 3, 7, 7] +2": the largest weight and the number of further ones.
std::string weights_text(const NodeRow& row) {
  if (row.weights.empty()) return "";
  const auto largest =
      std::max_element(row.weights.begin(), row.weights.end(), [](const auto& a, const auto& b) {
        return element_count(a.second) < element_count(b.second);
      });
  const std::string text = to_string(largest->second);
  return row.weights.size() == 1 ? text : text + " +" + std::to_string(row.weights.size() - 1);
}

/// Returns "g0 -> g1"; one side alone if both are equal or the other is empty.
std::string groups_text(const NodeRow& row) {
  constexpr size_t kMost = 3;
  const std::string in = listed(row.groups_in, kMost);
  std::string out = listed(row.groups_out, kMost);
  if (row.groups_in == row.groups_out) return out;
  return (in.empty() ? "-" : in) + " -> " + (out.empty() ? "-" : out);
}

std::string outputs_text(const NodeRow& row) {
  if (row.outputs.empty()) return "";
  const std::string first = shape_text(row.outputs[0]);
  return row.outputs.size() == 1 ? first : first + " +" + std::to_string(row.outputs.size() - 1);
}

/// Returns "" for 0: most nodes have neither parameters nor multiply-adds.
std::string count_text(int64_t count) { return count == 0 ? "" : with_thousands(count); }

}  // namespace

std::vector<InputRow> input_rows(const Graph& graph, const Facts& facts, const Probe& probe) {
  std::vector<InputRow> rows;
  for (size_t i = 0; i < graph.inputs.size(); ++i) {
    const ValueId v = graph.inputs[i];
    const auto& declared = graph.value(v).declared;
    const bool open = !declared || std::any_of(declared->begin(), declared->end(),
                                               [](int64_t d) { return d < 0; });
    rows.push_back({graph.value(v).name, facts.shapes[v], open && i >= probe.inputs.size(),
                    graph.value(v).dtype, declared});
  }
  return rows;
}

std::vector<std::string> uncounted(const Graph& graph, const Facts& facts) {
  std::vector<std::string> labels;
  for (const Node& node : graph.nodes) {
    if (is_shape_arithmetic(facts, node) || !hides_macs(NodeView(graph, node, facts))) continue;
    labels.push_back(label_of(graph, node) + " (" + node.op + ")");
  }
  return labels;
}

std::string macs_text(const std::vector<InputRow>& inputs,
                      const std::vector<std::string>& uncounted) {
  constexpr size_t kMost = 3;
  std::string text = "MACs are counted for " + to_text(inputs) + ".\n";
  if (uncounted.empty()) return text;
  return text + "They exclude " + counted(static_cast<int64_t>(uncounted.size()), "node") +
         " with unknown multiply-adds: " + printable(listed(uncounted, kMost)) + ".\n";
}

std::string to_text(const std::vector<InputRow>& inputs) {
  std::string text;
  for (const InputRow& input : inputs) {
    if (!text.empty()) text += ", ";
    text += printable(input.name) + shape_text(input.shape);
    if (input.assumed) text += " (assumed)";
  }
  return text;
}

Inspection inspect(const Graph& graph, const Facts& facts, const Coupling& coupling,
                   const Probe& probe) {
  Inspection result;
  result.inputs = input_rows(graph, facts, probe);
  const DimClassGroups groups(coupling);
  const IdVector<WeightId, bool> is_parameter = parameters(graph);
  IdVector<WeightId, bool> to_count = is_parameter;
  for (const Node& node : graph.nodes) {
    NodeRow row;
    row.node = label_of(graph, node);
    row.op = node.op;
    add_weights(graph, node, to_count, row);
    for (const ValueId v : node.outputs) {
      if (v != kNone) row.outputs.push_back(facts.shapes[v]);
    }
    row.macs = macs(NodeView(graph, node, facts));
    row.groups_in = ids_of(coupling, groups.of_inputs(graph, node));
    row.groups_out = ids_of(coupling, groups.of_outputs(node));
    row.shape_arithmetic = is_shape_arithmetic(facts, node);
    result.macs += row.macs;
    result.nodes.push_back(std::move(row));
  }
  for (const WeightId w : graph.weights.ids()) {
    if (is_parameter[w]) result.params += graph.weights[w].count();
  }
  const ActivationMemory memory(graph, facts, coupling);
  const AxisMasks all = AxisMasks::all_kept(coupling);
  result.arena = memory.arena(all);
  for (const MemoryStep& step : memory.curve(all)) {
    result.nodes[step.node.index()].memory = step.bytes;
    result.peak_memory = std::max(result.peak_memory, step.bytes);
  }
  result.uncounted = uncounted(graph, facts);
  result.groups = static_cast<int>(coupling.groups.size());
  for (const Group& group : coupling.groups) result.channels += group.size;
  return result;
}

namespace {

/// Returns the sources of data that suit an input.
std::string data_for(const InputRow& input) {
  if (!input.declared || input.declared->empty()) return "--input " + input.name + "=VALUE";
  const Shape& dims = *input.declared;
  const auto is_channels = [](int64_t size) { return size == 1 || size == 3; };
  const bool pictures = dims.size() == 4 && (is_channels(dims[1]) || is_channels(dims[3]));
  if (pictures) return "images:DIR";
  if (dims.size() == 2 && dims[1] != 1) return is_floating(input.dtype) ? "audio:DIR" : "text:FILE";
  return "";
}

std::string inputs_text(const std::vector<InputRow>& inputs) {
  using enum Table::Align;
  Table table({"input", "type", "shape", "data besides npz:FILE"}, {kLeft, kLeft, kLeft, kLeft});
  for (const InputRow& input : inputs) {
    table.add({printable(input.name), std::string(name_of(input.dtype)),
               input.declared ? to_string(*input.declared) : "?", data_for(input)});
  }
  return table.text();
}

}  // namespace

std::string to_text(const Inspection& inspection, bool all) {
  using enum Table::Align;
  Table table({"node", "operator", "weights", "output", "params", "MACs", "groups"},
              {kLeft, kLeft, kLeft, kLeft, kRight, kRight, kLeft});
  int64_t left_out = 0;
  int64_t params = 0;
  for (const NodeRow& row : inspection.nodes) {
    params += row.params;
    if (row.shape_arithmetic && !all) {
      ++left_out;
      continue;
    }
    table.add({printable(row.node), printable(row.op), weights_text(row), outputs_text(row),
               count_text(row.params), count_text(row.macs), groups_text(row)});
  }
  table.rule();
  table.add({"total", "", "", "", with_thousands(inspection.params),
             with_thousands(inspection.macs), counted(inspection.groups, "group")});
  std::string text = table.text();
  text += "\n" + inputs_text(inspection.inputs) + "\n" +
          macs_text(inspection.inputs, inspection.uncounted);
  if (left_out > 0) text += counted(left_out, "node") + " of shape arithmetic not shown (-v).\n";
  if (params < inspection.params) {
    text += counted(inspection.params - params, "parameter") + " in unused weights.\n";
  }
  return text;
}

std::string memory_text(const Inspection& inspection) {
  using enum Table::Align;
  constexpr int64_t kWidth = 40;
  const int64_t peak = std::max<int64_t>(1, inspection.peak_memory);
  Table table({"node", "operator", "output", "alive, bytes", ""},
              {kLeft, kLeft, kLeft, kRight, kLeft});
  for (const NodeRow& row : inspection.nodes) {
    if (row.memory == 0) continue;
    std::string bar((row.memory * kWidth + peak - 1) / peak, '#');
    if (row.memory == inspection.peak_memory) bar += " peak";
    table.add({printable(row.node), printable(row.op), outputs_text(row),
               with_thousands(row.memory), bar});
  }
  return table.text() + "\nAt most " + with_thousands(inspection.peak_memory) +
         " bytes of activations are alive at once, for " + to_text(inspection.inputs) +
         "; an arena for all of them takes " + with_thousands(inspection.arena) + ".\n";
}

void describe(JsonWriter& json, const std::pair<std::string, Shape>& weight) {
  json("name", weight.first)("shape", weight.second);
}

void describe(JsonWriter& json, const NodeRow& row) {
  json("node", row.node)("op", row.op)("weights", row.weights)("outputs", row.outputs);
  json("params", row.params)("macs", row.macs)("memory", row.memory);
  json("groups_in", row.groups_in)("groups_out", row.groups_out);
  json("shape_arithmetic", row.shape_arithmetic);
}

void describe(JsonWriter& json, const Inspection& inspection) {
  json("inputs", inspection.inputs)("nodes", inspection.nodes);
  json.inner("totals", [&](JsonWriter& inner) {
    inner("params", inspection.params)("macs", inspection.macs);
    inner("peak_memory", inspection.peak_memory)("arena", inspection.arena);
    inner("uncounted", inspection.uncounted)("groups", inspection.groups);
    inner("channels", inspection.channels);
  });
}

std::string to_json(const Inspection& inspection) {
  return document_of("parsimony_inspect", 1, inspection);
}

}  // namespace parsimony
