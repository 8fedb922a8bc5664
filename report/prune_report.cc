#include "parsimony/report/prune_report.h"

#include <algorithm>
#include <cmath>
#include <ctime>
#include <map>
#include <string>

#include "parsimony/api/latency/profiler.h"
#include "parsimony/masks/memory.h"
#include "parsimony/pruners/layers.h"
#include "parsimony/pruners/units.h"
#include "parsimony/report/explain.h"
#include "parsimony/report/inspect.h"
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

/// Summarises the masks; with `all`, per tensor.
std::string constants_text(const ConstantsReport& constants, bool all) {
  using enum Table::Align;
  int64_t zeros = 0;
  int64_t removed = 0;
  Table table({"masked tensor", "zeros", "removed", "left as zeros"},
              {kLeft, kRight, kRight, kRight});
  for (const MaskOutcome& mask : constants.masks) {
    zeros += mask.zeros;
    removed += mask.removed;
    table.add({printable(mask.tensor), with_thousands(mask.zeros), with_thousands(mask.removed),
               with_thousands(mask.zeros - mask.removed)});
  }
  std::string text = counted(zeros, "element") + " masked: " + with_thousands(removed) +
                     " removed with their channels, " + with_thousands(zeros - removed) +
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

/// Returns "2:4 along the input axis: 12 of 12 tensors."
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

std::string milliseconds(double seconds) { return formatted("%.3g", seconds * 1e3); }

/// Returns "today", "1 day ago", "12 days ago".
std::string age_of(int64_t moment) {
  constexpr int64_t kDay = 86400;
  const int64_t days = (static_cast<int64_t>(std::time(nullptr)) - moment) / kDay;
  return days <= 0 ? "today" : counted(days, "day") + " ago";
}

std::string rounding_text(const RoundingRow& row, int64_t macs) {
  return "Rounded to widths of " + row.target + ": " +
         formatted("%.1f%% of the scores are kept", 100 * row.score) +
         formatted(", %.1f%% without rounding", 100 * row.score_without) + "; MACs " +
         formatted("%+.1f%%", row.macs_without == 0
                                  ? 0.0
                                  : 100.0 * (static_cast<double>(macs) /
                                                 static_cast<double>(row.macs_without) -
                                             1)) +
         (row.time ? formatted(", time %+.1f%% here", 100 * (*row.time - 1)) : std::string()) +
         ".\n";
}

std::string latency_text(const LatencyRow& row) {
  const std::string by_layers = milliseconds(row.predicted) + " ms by the times of its layers";
  std::string text = "Requested " + milliseconds(row.requested) + " ms: ";
  if (row.networks == 0) {
    text += by_layers + "; the network as a whole was not measured.\n";
  } else {
    text += "measured " + milliseconds(row.measured) + " ms" +
            (row.noise > 0 ? formatted(" with a standard error of %.2g%%", 100 * row.noise) : "") +
            (row.command.empty() ? ", interleaved with the original (" : ", by the command (") +
            counted(row.networks, "network") + " tried); " + by_layers + ".\n";
  }
  const bool by_command = row.engine == "command";
  text += by_command
              ? "By the command; "
              : "On " + row.engine + " with " + counted(row.threads, "thread") +
                    (row.other_machine.empty() ? "" : " of " + printable(row.other_machine)) + "; ";
  return text + counted(row.subgraphs, "layer") + ", " + counted(row.fresh, "shape") +
         " of them measured in this run" +
         (row.table_error > 0
              ? formatted(" (median error at widths in between %.2g%%)", 100 * row.table_error)
              : "") +
         (row.oldest > 0 ? ", the oldest time " + age_of(row.oldest) : std::string()) + ".\n";
}

}  // namespace

std::vector<GroupOutcome> outcomes(const Graph& graph, const Coupling& coupling,
                                   const AxisMasks& masks) {
  const Layers layers(graph);
  std::vector<GroupOutcome> result;
  for (const GroupId g : coupling.groups.ids()) {
    const Group& group = coupling.groups[g];
    GroupOutcome outcome{group.id, group.size, masks.kept(g), group.mixes, group.granularity, {}};
    for (const NodeId layer : layers_of(graph, layers, group, Role::kOut)) {
      outcome.layers.push_back(label_of(graph, graph.node(layer)));
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

void describe(JsonWriter& json, const ReportedFile& file) {
  json("path", file.path);
  if (!file.sha256.empty()) json("sha256", file.sha256);
  json("bytes", file.bytes);
}

void describe(JsonWriter& json, const GroupOutcome& group) {
  json("id", group.id)("size", group.size)("kept", group.kept)("mixes", group.mixes);
  json("granularity", group.granularity)("layers", group.layers);
}

void describe(JsonWriter& json, const MaskOutcome& mask) {
  json("tensor", mask.tensor)("zeros", mask.zeros);
  json("removed", mask.removed)("zeroed", mask.zeros - mask.removed);
}

void describe(JsonWriter& json, const TensorUpdate& update) {
  json("tensor", update.tensor)("reason", update.reason);
}

void describe(JsonWriter& json, const ConstantsReport& constants) {
  json("absorbers", constants.absorbers)("updates", constants.updates)("masks", constants.masks);
}

void describe(JsonWriter& json, const ElementOutcome& outcome) {
  json("tensor", outcome.tensor)("criterion", outcome.criterion);
  json("elements", outcome.elements)("zeroed", outcome.zeroed);
  if (outcome.pattern.empty()) return;
  json.inner("pattern", [&](JsonWriter& inner) {
    inner("is", outcome.pattern)("axis", outcome.axis)("holds", outcome.pattern_holds);
  });
}

void describe(JsonWriter& json, const OutputDifference& one) {
  json("name", one.name)("difference", one.difference)("tolerance", one.tolerance);
}

void describe(JsonWriter& json, const Proof& proof) {
  json("ran", proof.ran());
  if (!proof.ran()) {
    json("reason", proof.not_run);
    return;
  }
  json("holds", proof.holds())("inputs", proof.inputs)("steps", proof.steps);
  json("seed", proof.seed)("mixes", proof.mixes);
  if (!proof.engine.empty()) json("engine", proof.engine);
  json("outputs", proof.outputs)("choices", proof.choices)("notes", proof.notes);
}

void describe(JsonWriter& json, const LatencyRow& row) {
  json("engine", row.engine)("threads", row.threads)("requested_seconds", row.requested);
  json("dense_seconds", row.dense)("dense_by_tables_seconds", row.tables);
  json("predicted_seconds", row.predicted)("measured_seconds", row.measured);
  json("networks", row.networks)("subgraphs", row.subgraphs)("measured_now", row.fresh);
  json("oldest", row.oldest);
  if (!row.command.empty()) json("measured_by", row.command)("noise", row.noise);
  if (!row.other_machine.empty()) json("tables_of", row.other_machine);
  if (row.table_error > 0) json("table_error", row.table_error);
}

void describe(JsonWriter& json, const RoundingRow& row) {
  json("target", row.target)("score", row.score)("score_without", row.score_without);
  json("macs_without", row.macs_without);
  if (row.time) json("time", *row.time);
}

void describe(JsonWriter& json, const RecoveryState& state) {
  json("output_error", state.error)("test_error", state.test_error)("accuracy", state.accuracy);
  if (state.loss) json("loss", *state.loss);
}

void describe(JsonWriter& json, const LayerRecovery& fit) {
  json("layer", fit.layer)("error_before", fit.before)("error_after", fit.after);
  json("ridge", fit.ridge)("kept", fit.kept);
}

void describe(JsonWriter& json, const RecoveryStep& step) {
  describe(json, step.after);
  json("method", name_of(step.method))("layers", step.layers)("seconds", step.seconds);
  if (!step.fits.empty()) json("fits", step.fits);
}

void describe(JsonWriter& json, const RecoveryReport& report) {
  json("samples", report.samples)("test_samples", report.test_samples);
  json("dense_accuracy", report.dense_accuracy);
  if (report.dense_loss) json("dense_loss", *report.dense_loss);
  json("before", report.before);
  json("steps", report.steps)("notes", report.notes);
}

void describe(JsonWriter& json, const MetricTrial& trial) {
  json("macs", trial.macs)("value", trial.value)("within", trial.within);
  if (!trial.failure.empty()) json("failure", trial.failure);
}

void describe(JsonWriter& json, const MetricRow& row) {
  json("command", row.command)("lower_is_better", row.lower_is_better);
  json("before", row.before)("after", row.after);
  json("output_before", row.output_before)("output_after", row.output_after);
  if (row.bound) json("bound", *row.bound)("trials", row.trials);
}

void describe(JsonWriter& json, const CheckpointTensorRow& row) {
  json("tensor", row.tensor);
  if (!row.weight.empty()) json("weight", row.weight);
  json("matched", row.matched.empty() ? "no weight of the network" : row.matched);
  json("before", row.before)("after", row.after);
  if (!row.why_left.empty()) json("left", row.why_left);
}

void describe(JsonWriter& json, const CheckpointReport& report) {
  json("path", report.path)("result", report.result)("copies", report.copies);
  json("cut", report.cut)("states", report.states)("left", report.left);
  json("tensors", report.tensors);
}

void describe(JsonWriter& json, const PruneReport& report) {
  json("command", report.command)("source", report.source)("result", report.result);
  json("inputs", report.inputs);
  json.inner("params", [&](JsonWriter& inner) {
    inner("before", report.before.params)("after", report.after.params);
  });
  json.inner("macs", [&](JsonWriter& inner) {
    inner("before", report.before.macs)("after", report.after.macs);
    inner("uncounted", report.uncounted);
  });
  if (report.memory) {
    json.inner("peak_memory", [&](JsonWriter& inner) {
      inner("before", report.memory->before)("after", report.memory->after);
    });
  }
  json("zeroed", zeroed(report))("elements", report.elements)("groups", report.groups);
  json("scales", report.scales)("unpruned_dims", report.unpruned_dims)("proof", report.proof);
  json("notes", report.notes);
  Json timings = Json::object();
  for (const auto& [stage, seconds] : report.timings) {
    timings[stage] = timings.value(stage, 0.0) + seconds;
  }
  json("timings", timings);
  if (!report.samples.empty()) {
    Json samples = Json::object();
    for (const auto& [stage, count] : report.samples) samples[stage] = count;
    json("samples_read", samples);
  }
  if (report.latency) json("latency", *report.latency);
  if (report.rounding) json("rounding", *report.rounding);
  if (!report.metrics.empty()) json("metrics", report.metrics);
  if (report.depth) json("depth", *report.depth);
  if (report.constants) json("constants", *report.constants);
  if (report.recovery) json("recovery", *report.recovery);
  if (report.checkpoint) json("checkpoint", *report.checkpoint);
}

std::string to_json(const RecoveryReport& report) {
  return document_of("parsimony_recovery", 1, report);
}

std::string to_json(const PruneReport& report) {
  return document_of("parsimony_report", 2, report);
}

namespace {

std::string metrics_text(const std::vector<MetricRow>& metrics) {
  using enum Table::Align;
  Table table({"metric", "before", "after", "change"}, {kLeft, kRight, kRight, kRight});
  for (const MetricRow& row : metrics) {
    const double change = row.before == 0 || !row.after ? 0 : *row.after / row.before - 1;
    table.add({printable(row.command), formatted("%.6g", row.before),
               row.after ? formatted("%.6g", *row.after) : "failed",
               row.before == 0 || !row.after ? "-" : formatted("%+.2f%%", 100 * change)});
  }
  std::string text = table.text();
  for (const MetricRow& row : metrics) {
    if (!row.bound) continue;
    Table trials({"MACs asked for", "metric", formatted("expected %.6g", *row.bound)},
                 {kRight, kRight, kLeft});
    for (const MetricTrial& trial : row.trials) {
      trials.add({formatted("%.1f%%", 100 * trial.macs),
                  trial.value ? formatted("%.6g", *trial.value) : "failed",
                  trial.within ? "within" : printable(trial.failure)});
    }
    text += "\n" + trials.text();
  }
  return text;
}

}  // namespace

std::string to_text(const PruneReport& report, bool all) {
  using enum Table::Align;
  Table table({"", "before", "after", "left"}, {kLeft, kRight, kRight, kRight});
  const auto add = [&](const char* what, int64_t before, int64_t after) {
    table.add({what, with_thousands(before), with_thousands(after), percent(after, before)});
  };
  add("parameters", report.before.params, report.after.params);
  add("MACs", report.before.macs, report.after.macs);
  if (!report.result.path.empty()) add("file, bytes", report.source.bytes, report.result.bytes);
  if (report.memory && (report.memory->requested || all)) {
    add("activations, bytes", report.memory->before, report.memory->after);
  }
  if (report.latency) {
    const LatencyRow& row = *report.latency;
    table.add({"latency, ms", milliseconds(row.dense), milliseconds(row.measured),
               percent(std::llround(row.measured * 1e9), std::llround(row.dense * 1e9))});
  }
  std::string text = table.text();
  if (report.latency) text += latency_text(*report.latency);
  if (report.rounding) text += rounding_text(*report.rounding, report.after.macs);
  if (!report.metrics.empty()) text += metrics_text(report.metrics);
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
  const bool reads = !report.samples.empty();
  Table table({"stage", "time", reads ? "samples read" : ""}, {kLeft, kRight, kRight});
  double total = 0;
  for (const auto& [stage, seconds] : report.timings) {
    const auto read = std::ranges::find_if(report.samples,
                                           [&](const auto& entry) { return entry.first == stage; });
    const bool any = read != report.samples.end();
    table.add({stage, duration(seconds), any ? with_thousands(read->second) : ""});
    total += seconds;
  }
  table.rule();
  table.add({"total", duration(total), ""});
  return table.text();
}

namespace {

/// Returns why the plan is empty.
std::string reason_for_nothing(const PruneResult& pruning) {
  if (std::string why = why_no_axis(pruning.graph); !why.empty()) return why;
  if (pruning.analysis.coupling.groups.empty()) {
    return "no axis of this network can shrink; `parsimony explain` says why";
  }
  for (const auto& keep : pruning.allocation.masks.keep) {
    if (std::find(keep.begin(), keep.end(), 0) != keep.end()) return "the plan is empty";
  }
  if (!pruning.notes.empty()) return "no group was pruned, see the notes";
  return "the requested amount removes no channel after rounding (round_to, keep_at_least)";
}

ConstantsReport constants_report(const Pruning& pruning) {
  ConstantsReport report{pruning.absorbers, {}, pruning.masked};
  for (const TensorUpdate& update : pruning.plan.updates) {
    report.updates.push_back({update.tensor, update.reason});
  }
  return report;
}

}  // namespace

PruneReport report_of(const PruneResult& result) {
  const Graph& graph = result.graph;
  const Analysis& analysis = result.analysis;
  PruneReport report;
  for (const StageTime& time : result.times) {
    report.timings.emplace_back(time.stage, time.seconds);
    if (time.samples > 0) report.samples.emplace_back(time.stage, time.samples);
  }
  report.inputs = input_rows(graph, analysis.sample, analysis.probe);
  report.uncounted = uncounted(graph, analysis.sample);
  report.before = result.dense;
  report.after = result.small;
  if (!result.depth) {
    const ActivationMemory memory(graph, analysis.sample, analysis.coupling);
    report.memory = MemoryRow{memory.peak(AxisMasks::all_kept(analysis.coupling)),
                              memory.peak(result.allocation.masks)};
  }
  if (const auto& rounding = result.rounding) {
    report.rounding = RoundingRow{std::string(name_of(rounding->target)), rounding->score,
                                  rounding->score_without, rounding->macs_without, rounding->time};
  }
  report.depth = result.depth;
  report.proof = result.proof;
  report.recovery = result.recovery;
  report.elements = result.elements;
  if (result.plan.constants == Constants::kExact) report.constants = constants_report(result);
  report.groups = outcomes(graph, analysis.coupling, result.allocation.masks);
  for (const CutScale& cut : result.scales) {
    report.scales.push_back(row_of(graph, analysis.coupling, cut, !result.plan.scales.empty()));
  }
  report.unpruned_dims = result.plan.unpruned_dims;
  report.notes = result.notes;
  if (result.plan.empty()) {
    report.notes.insert(report.notes.begin(), "nothing was pruned: " + reason_for_nothing(result));
  }
  return report;
}

LatencyRow row_of(const LatencyOutcome& outcome, const LatencyProfiler& profiler) {
  LatencyRow row;
  row.engine = profiler.engine();
  row.threads = profiler.threads();
  row.requested = outcome.requested;
  row.dense = outcome.dense;
  row.tables = outcome.tables;
  row.predicted = outcome.predicted;
  row.measured = outcome.measured;
  row.subgraphs = outcome.subgraphs;
  row.fresh = outcome.fresh;
  row.networks = outcome.rounds;
  row.command = profiler.command();
  row.other_machine = profiler.other_machine();
  row.noise = outcome.noise;
  row.table_error = outcome.table_error;
  for (const auto& [key, table] : profiler.tables()) {
    if (row.oldest == 0 || table.measured < row.oldest) row.oldest = table.measured;
  }
  return row;
}

}  // namespace parsimony
