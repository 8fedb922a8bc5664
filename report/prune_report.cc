#include "parsimony/report/prune_report.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <ctime>
#include <map>

#include "parsimony/report/json_impl.h"
#include "parsimony/report/parts_impl.h"
#include "parsimony/report/speedup.h"
#include "parsimony/report/text.h"

namespace parsimony {
namespace {

constexpr size_t kMostLayers = 4;

std::string group_counts(const PruneReport& report) {
  int64_t pruned = 0;
  int64_t mixing = 0;
  int64_t size = 0;
  int64_t kept = 0;
  for (const GroupOutcome& group : report.groups) {
    size += group.size;
    kept += group.kept;
    if (group.kept == group.size) continue;
    ++pruned;
    mixing += group.mixes ? 1 : 0;
  }
  std::string text = std::to_string(pruned) + " of " +
                     counted(static_cast<int64_t>(report.groups.size()), "group") + " pruned, " +
                     with_thousands(kept) + " of " + counted(size, "channel") + " kept";
  if (mixing > 0) {
    text += "; " + std::to_string(mixing) + " of them pass" + (mixing == 1 ? "es" : "") +
            " a mixing operator";
  }
  return text + ".\n";
}

std::string group_table(const PruneReport& report) {
  using enum Table::Align;
  Table table({"group", "size", "kept", "", "layers"}, {kLeft, kRight, kRight, kLeft, kLeft});
  for (const GroupOutcome& group : report.groups) {
    table.add({group.id, std::to_string(group.size), std::to_string(group.kept),
               group.mixes ? "mixes" : "", printable(listed(group.layers, kMostLayers))});
  }
  return "\n" + table.text();
}

std::string unpruned_table(const PruneReport& report) {
  using enum Table::Align;
  Table table({"is not pruned", "why"}, {kLeft, kLeft});
  for (const UnprunedDim& kept : report.unpruned_dims) {
    table.add({printable(kept.axis), printable(kept.reason)});
  }
  return "\n" + table.text();
}

Json to_object(const ReportedFile& file) {
  Json object = {{"path", file.path}};
  if (!file.sha256.empty()) object["sha256"] = file.sha256;
  object["bytes"] = file.bytes;
  return object;
}

Json groups_json(const PruneReport& report) {
  Json groups = Json::array();
  for (const GroupOutcome& group : report.groups) {
    groups.push_back({{"id", group.id},
                      {"size", group.size},
                      {"kept", group.kept},
                      {"mixes", group.mixes},
                      {"granularity", group.granularity},
                      {"layers", group.layers}});
  }
  return groups;
}

Json to_object(const ConstantsReport& constants) {
  Json masks = Json::array();
  for (const MaskOutcome& mask : constants.masks) {
    masks.push_back({{"tensor", mask.tensor},
                     {"zeros", mask.zeros},
                     {"removed", mask.gone},
                     {"zeroed", mask.zeros - mask.gone}});
  }
  Json updates = Json::array();
  for (const TensorUpdate& update : constants.updates) {
    updates.push_back({{"tensor", update.tensor}, {"reason", update.reason}});
  }
  return {{"carriers", constants.absorbers}, {"folds", updates}, {"masks", masks}};
}

/// What the masks came to; with `all` tensor by tensor.
std::string constants_text(const ConstantsReport& constants, bool all) {
  using enum Table::Align;
  int64_t zeros = 0;
  int64_t gone = 0;
  Table table({"masked tensor", "zeros", "removed", "left as zeros"},
              {kLeft, kRight, kRight, kRight});
  for (const MaskOutcome& mask : constants.masks) {
    zeros += mask.zeros;
    gone += mask.gone;
    table.add({printable(mask.tensor), with_thousands(mask.zeros), with_thousands(mask.gone),
               with_thousands(mask.zeros - mask.gone)});
  }
  std::string text = counted(zeros, "element") + " masked: " + with_thousands(gone) +
                     " removed with their channels, " + with_thousands(zeros - gone) +
                     " left as zeros.\n";
  const auto updates = static_cast<int64_t>(constants.updates.size());
  text += "Constants: " + counted(constants.absorbers, "absorbing channel") + ", " +
          counted(updates, "tensor") + " with new values.\n";
  if (all && !constants.masks.empty()) text += "\n" + table.text();
  return text;
}

std::string pattern_text(const ElementOutcome& outcome) {
  if (outcome.pattern.empty()) return "";
  return outcome.pattern + (outcome.pattern_holds ? " along axis " : " broken along axis ") +
         std::to_string(outcome.axis);
}

std::string element_table(const PruneReport& report) {
  using enum Table::Align;
  Table table({"tensor", "criterion", "elements", "zero", "", "pattern"},
              {kLeft, kLeft, kRight, kRight, kRight, kLeft});
  for (const ElementOutcome& outcome : report.elements) {
    table.add({printable(outcome.tensor), outcome.criterion, with_thousands(outcome.elements),
               with_thousands(outcome.zeroed), percent(outcome.zeroed, outcome.elements),
               pattern_text(outcome)});
  }
  return "\n" + table.text();
}

/// "2:4 along the input axis: 12 of 12 tensors."
std::string pattern_counts(const PruneReport& report) {
  std::map<std::string, std::pair<int64_t, int64_t>> counts;
  for (const ElementOutcome& outcome : report.elements) {
    if (outcome.pattern.empty()) continue;
    auto& [holds, all] = counts[outcome.pattern];
    holds += outcome.pattern_holds ? 1 : 0;
    ++all;
  }
  std::string text;
  for (const auto& [pattern, count] : counts) {
    text += "Pattern " + pattern + " along the input axis: holds in " +
            std::to_string(count.first) + " of " + counted(count.second, "tensor") + ".\n";
  }
  return text;
}

Json elements_json(const PruneReport& report) {
  Json rows = Json::array();
  for (const ElementOutcome& outcome : report.elements) {
    Json row = {{"tensor", outcome.tensor},
                {"criterion", outcome.criterion},
                {"elements", outcome.elements},
                {"zeroed", outcome.zeroed}};
    if (!outcome.pattern.empty()) {
      row["pattern"] = {
          {"is", outcome.pattern}, {"axis", outcome.axis}, {"holds", outcome.pattern_holds}};
    }
    rows.push_back(std::move(row));
  }
  return rows;
}

/// JSON has no infinity.
Json number(double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); }

Json to_array(const std::vector<OutputDifference>& differences) {
  Json rows = Json::array();
  for (const OutputDifference& one : differences) {
    rows.push_back(
        {{"name", one.name}, {"difference", number(one.difference)}, {"tolerance", one.tolerance}});
  }
  return rows;
}

Json to_object(const Proof& proof) {
  if (!proof.ran()) return {{"ran", false}, {"reason", proof.not_run}};
  return {{"ran", true},
          {"holds", proof.holds()},
          {"inputs", proof.inputs},
          {"seed", proof.seed},
          {"mixes", proof.mixes},
          {"outputs", to_array(proof.outputs)},
          {"choices", to_array(proof.choices)},
          {"notes", proof.notes}};
}

std::string milliseconds(double seconds) {
  char text[32];
  std::snprintf(text, sizeof text, "%.3g", seconds * 1e3);
  return text;
}

/// "today", "1 day ago", "12 days ago"
std::string age_of(int64_t moment) {
  constexpr int64_t kDay = 86400;
  const int64_t days = (static_cast<int64_t>(std::time(nullptr)) - moment) / kDay;
  return days <= 0 ? "today" : counted(days, "day") + " ago";
}

std::string latency_text(const LatencyRow& row) {
  std::string text = "Asked for " + milliseconds(row.wanted) + " ms: measured " +
                     milliseconds(row.measured) + " ms, interleaved with the original (" +
                     counted(row.networks, "network") + " tried); " + milliseconds(row.predicted) +
                     " ms by the times of its layers.\n";
  return text + "On " + row.engine + " with " + counted(row.threads, "thread") + "; " +
         counted(row.subgraphs, "layer") + ", " + counted(row.fresh, "shape") +
         " of them measured in this run" +
         (row.oldest > 0 ? ", the oldest time " + age_of(row.oldest) : std::string()) + ".\n";
}

Json to_object(const LatencyRow& row) {
  return {{"engine", row.engine},
          {"threads", row.threads},
          {"wanted_seconds", row.wanted},
          {"dense_seconds", row.dense},
          {"dense_by_tables_seconds", row.tables},
          {"predicted_seconds", row.predicted},
          {"measured_seconds", row.measured},
          {"networks", row.networks},
          {"pieces", row.subgraphs},
          {"measured_now", row.fresh},
          {"oldest", row.oldest}};
}

Json to_object(const RecoveryState& state) {
  return {{"output_error", number(state.error)},
          {"accuracy", state.accuracy ? Json(*state.accuracy) : Json(nullptr)}};
}

Json to_object(const RecoveryReport& report) {
  Json steps = Json::array();
  for (const RecoveryStep& step : report.steps) {
    Json object = to_object(step.after);
    object["method"] = name_of(step.method);
    object["layers"] = step.layers;
    object["seconds"] = step.seconds;
    steps.push_back(std::move(object));
  }
  return {{"samples", report.samples},
          {"test_samples", report.test_samples},
          {"dense_accuracy", report.dense_accuracy ? Json(*report.dense_accuracy) : Json(nullptr)},
          {"before", to_object(report.before)},
          {"steps", std::move(steps)},
          {"notes", report.notes}};
}

}  // namespace

std::vector<GroupOutcome> outcomes(const Graph& graph, const Coupling& coupling,
                                   const AxisMasks& masks) {
  std::vector<GroupOutcome> result;
  for (size_t g = 0; g < coupling.groups.size(); ++g) {
    const Group& group = coupling.groups[g];
    GroupOutcome outcome{group.id,    group.size,        masks.kept(static_cast<int>(g)),
                         group.mixes, group.granularity, {}};
    for (const Member& member : group.members) {
      const Shape& dims = graph.weight(graph.value(member.value).weight).dims;
      if (member.role != Role::kOut || dims.size() < 2) continue;
      const std::string& layer = label_of(graph, graph.node(member.node));
      auto& layers = outcome.layers;
      if (std::find(layers.begin(), layers.end(), layer) == layers.end()) layers.push_back(layer);
    }
    result.push_back(std::move(outcome));
  }
  return result;
}

int64_t zeroed(const PruneReport& report) {
  int64_t sum = 0;
  for (const ElementOutcome& outcome : report.elements) sum += outcome.zeroed;
  return sum;
}

std::string to_json(const PruneReport& report) {
  Json inputs = Json::array();
  for (const InputRow& input : report.inputs) {
    inputs.push_back(
        {{"name", input.name}, {"shape", shape_json(input.shape)}, {"assumed", input.assumed}});
  }
  Json kept = Json::array();
  for (const UnprunedDim& whole : report.unpruned_dims) {
    kept.push_back({{"axis", whole.axis}, {"reason", whole.reason}});
  }
  Json timings = Json::object();
  for (const auto& [stage, seconds] : report.timings) {
    timings[stage] = timings.value(stage, 0.0) + seconds;
  }
  Json document = {{"parsimony_report", 1},
                   {"command", report.command},
                   {"source", to_object(report.source)},
                   {"result", to_object(report.result)},
                   {"inputs", std::move(inputs)},
                   {"params", {{"before", report.before.params}, {"after", report.after.params}}},
                   {"macs",
                    {{"before", report.before.macs},
                     {"after", report.after.macs},
                     {"uncounted", report.uncounted}}},
                   {"zeroed", zeroed(report)},
                   {"elements", elements_json(report)},
                   {"groups", groups_json(report)},
                   {"scales", scales_json(report.scales)},
                   {"kept_whole", std::move(kept)},
                   {"proof", to_object(report.proof)},
                   {"notes", report.notes},
                   {"timings", std::move(timings)}};
  if (report.latency) document["latency"] = to_object(*report.latency);
  if (report.depth) document["depth"] = to_object(*report.depth);
  if (report.constants) document["constants"] = to_object(*report.constants);
  if (report.recovery) document["recovery"] = to_object(*report.recovery);
  return dumped(document);
}

std::string to_text(const PruneReport& report, bool all) {
  using enum Table::Align;
  Table table({"", "before", "after", "left"}, {kLeft, kRight, kRight, kRight});
  const auto add = [&](const char* what, int64_t before, int64_t after) {
    table.add({what, with_thousands(before), with_thousands(after), percent(after, before)});
  };
  add("parameters", report.before.params, report.after.params);
  add("MACs", report.before.macs, report.after.macs);
  add("file, bytes", report.source.bytes, report.result.bytes);
  if (report.latency) {
    const LatencyRow& row = *report.latency;
    table.add({"latency, ms", milliseconds(row.dense), milliseconds(row.measured),
               percent(std::llround(row.measured * 1e9), std::llround(row.dense * 1e9))});
  }
  std::string text = table.text();
  if (report.latency) text += latency_text(*report.latency);
  if (report.depth) text += to_text(*report.depth, all);
  text += macs_text(report.inputs, report.uncounted) + group_counts(report);
  if (zeroed(report) > 0) text += counted(zeroed(report), "element") + " set to zero.\n";
  text += pattern_counts(report);
  if (all && !report.elements.empty()) text += element_table(report);
  if (report.constants) text += constants_text(*report.constants, all);
  text += scales_text(report.scales, all);
  if (all && !report.groups.empty()) text += group_table(report);
  if (all && !report.unpruned_dims.empty()) text += unpruned_table(report);
  return text;
}

std::string timings_text(const PruneReport& report) {
  using enum Table::Align;
  Table table({"stage", "time"}, {kLeft, kRight});
  double total = 0;
  for (const auto& [stage, seconds] : report.timings) {
    table.add({stage, duration(seconds)});
    total += seconds;
  }
  table.rule();
  table.add({"total", duration(total)});
  return table.text();
}

}  // namespace parsimony
