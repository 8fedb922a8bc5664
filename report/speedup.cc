#include "parsimony/report/speedup.h"

#include <algorithm>
#include <vector>

#include "parsimony/report/parts_impl.h"
#include "parsimony/report/text.h"

namespace parsimony {
namespace {

constexpr size_t kMostChoices = 5;  // rows of a table for people

std::string brief(double value) { return formatted("%.1e", value); }

std::string output_table(const Proof& proof) {
  using enum Table::Align;
  Table table({"output", "difference", "allowed"}, {kLeft, kRight, kRight});
  std::vector<OutputDifference> rows = proof.choices;
  std::stable_sort(rows.begin(), rows.end(),
                   [](const auto& a, const auto& b) { return a.difference > b.difference; });
  rows.resize(std::min(rows.size(), kMostChoices));
  const int64_t left = std::ssize(proof.choices) - std::ssize(rows);
  rows.insert(rows.begin(), proof.outputs.begin(), proof.outputs.end());
  for (const OutputDifference& one : rows) {
    table.add({printable(one.name), brief(one.difference), brief(one.tolerance)});
  }
  if (left > 0) table.add({"and " + counted(left, "choice") + " that differ less", "", ""});
  return table.text();
}

std::string original(const Proof& proof, const Plan& plan) {
  const std::string blocks = removes_blocks(plan) ? "whose removed blocks add nothing" : "";
  if (plan.groups.empty() && !blocks.empty()) return blocks;
  const std::string before = blocks.empty() ? "" : blocks + ", ";
  if (plan.constants == Constants::kExact) return before + "with the masked weights set to zero";
  return before +
         (proof.mixes ? "with the removed channels absent" : "with the removed slices set to zero");
}

}  // namespace

std::string to_text(const Proof& proof, bool all, const Plan& plan) {
  if (!proof.ran()) return "Not proven: " + printable(proof.not_run) + ".\n";
  const OutputDifference* worst = proof.worst();
  std::string text = proof.holds() ? "Proven: " : "DIFFERS: ";
  text += "largest difference " + brief(worst == nullptr ? 0 : worst->difference) + " (allowed " +
          brief(worst == nullptr ? 0 : worst->tolerance) + ") from the original " +
          original(proof, plan) + ", on " + counted(proof.inputs, "random input") +
          (proof.steps > 1 ? " and " + counted(proof.steps, "step") + " from each" : "") + ".\n";
  if (!proof.choices.empty()) {
    text += "note: the small network used the original's operands at " +
            counted(std::ssize(proof.choices), "place") +
            " such as TopK or a comparison, where rounding decides the choice; its own operands "
            "were compared as well\n";
  }
  for (const std::string& note : proof.notes) text += "note: " + printable(note) + "\n";
  if (all) text += output_table(proof);
  return text;
}

namespace {

std::string percent(const std::optional<double>& accuracy) {
  return accuracy ? formatted("%.2f%%", 100 * *accuracy) : "-";
}

std::string error_text(const std::optional<double>& error) {
  return error ? formatted("%.4f", *error) : "-";
}

/// Renders the fits; empty if no layer was fitted.
std::string fits_text(const RecoveryStep& step) {
  using enum Table::Align;
  if (step.fits.empty()) return "";
  Table table({"layer", "error before", "after", "ridge", ""},
              {kLeft, kRight, kRight, kRight, kLeft});
  for (const LayerRecovery& fit : step.fits) {
    table.add({printable(fit.layer), error_text(fit.before), error_text(fit.after),
               formatted("%g", fit.ridge), fit.kept ? "kept: worse on held-out samples" : ""});
  }
  return "Fits of " + std::string(name_of(step.method)) + "; errors are on held-out samples:\n" +
         table.text();
}

}  // namespace

std::string to_text(const RecoveryReport& report) {
  using enum Table::Align;
  const bool by_loss = report.dense_loss.has_value();
  Table table({"network", "output error", "on test data", by_loss ? "loss" : "accuracy", "layers",
               "seconds"},
              {kLeft, kRight, kRight, kRight, kRight, kRight});
  const auto add = [&](const std::string& name, const RecoveryState& state,
                       const std::string& layers, const std::string& seconds) {
    table.add({name, formatted("%.4f", state.error), error_text(state.test_error),
               by_loss ? formatted("%.4f", *state.loss) : percent(state.accuracy), layers,
               seconds});
  };
  add("dense", {.error = 0, .accuracy = report.dense_accuracy, .loss = report.dense_loss}, "", "");
  add("pruned", report.before, "", "");
  for (const RecoveryStep& step : report.steps) {
    add("+ " + std::string(name_of(step.method)), step.after, with_thousands(step.layers),
        formatted("%.1f", step.seconds));
  }
  std::string text = table.text() + "Output error: |small - dense| / |dense| over " +
                     counted(report.samples, "calibration sample");
  if (report.test_samples > 0) {
    text += "; test data: " + counted(report.test_samples, "sample");
  }
  text += ".\n";
  for (const RecoveryStep& step : report.steps) text += fits_text(step);
  for (const std::string& note : report.notes) text += "note: " + printable(note) + "\n";
  return text;
}

namespace {

std::string four_digits(double value) { return formatted("%.4f", value); }

int64_t removed(const DepthReport& report) {
  return std::count_if(report.blocks.begin(), report.blocks.end(),
                       [](const BlockOutcome& block) { return block.removed; });
}

std::string fate(const BlockOutcome& block) {
  if (block.removed) return "removed";
  return block.excluded ? "excluded" : "kept";
}

std::string block_table(const DepthReport& report) {
  using enum Table::Align;
  Table table({"block", "nodes", "parameters", "MACs", "influence", ""},
              {kLeft, kRight, kRight, kRight, kRight, kLeft});
  for (const BlockOutcome& block : report.blocks) {
    table.add({printable(block.label), std::to_string(block.nodes),
               with_thousands(block.cost.params), with_thousands(block.cost.macs),
               four_digits(block.influence), fate(block)});
  }
  return "\n" + table.text();
}

std::string candidate_table(const DepthReport& report) {
  using enum Table::Align;
  Table table({"blocks less", "parameters", "MACs", "output error", ""},
              {kRight, kRight, kRight, kRight, kLeft});
  for (const DepthCandidate& candidate : report.candidates) {
    const char* note = candidate.removed == removed(report) ? "taken" : "";
    table.add({std::to_string(candidate.removed), with_thousands(candidate.cost.params),
               with_thousands(candidate.cost.macs), four_digits(candidate.error),
               candidate.met ? note : "misses the budget"});
  }
  return table.text();
}

}  // namespace

void describe(JsonWriter& json, const BlockOutcome& block) {
  json("add", block.add)("label", block.label)("influence", block.influence);
  json("params", block.cost.params)("macs", block.cost.macs)("nodes", block.nodes);
  json("excluded", block.excluded)("removed", block.removed);
}

void describe(JsonWriter& json, const DepthCandidate& candidate) {
  json("removed", candidate.removed)("params", candidate.cost.params)("macs", candidate.cost.macs);
  json("output_error", candidate.error)("met", candidate.met);
}

void describe(JsonWriter& json, const DepthReport& report) {
  json("blocks", report.blocks)("candidates", report.candidates);
}

std::string to_text(const DepthReport& report, bool all) {
  std::string text = std::to_string(removed(report)) + " of " +
                     counted(static_cast<int64_t>(report.blocks.size()), "residual block") +
                     " removed.\n";
  if (!report.candidates.empty()) text += candidate_table(report);
  if (all && !report.blocks.empty()) text += block_table(report);
  return text;
}

std::string blocks_text(const DepthReport& report) {
  using enum Table::Align;
  Table table({"block", "nodes", "parameters", "MACs"}, {kLeft, kRight, kRight, kRight});
  for (const BlockOutcome& block : report.blocks) {
    table.add({printable(block.label), std::to_string(block.nodes),
               with_thousands(block.cost.params), with_thousands(block.cost.macs)});
  }
  if (report.blocks.empty()) return "No residual block can be removed.\n";
  return table.text();
}

std::string blocks_json(const DepthReport& report) {
  std::vector<Json> rows;
  for (const BlockOutcome& block : report.blocks) {
    JsonWriter row;
    row("add", block.add)("label", block.label)("nodes", block.nodes);
    row("params", block.cost.params)("macs", block.cost.macs);
    rows.push_back(row.taken());
  }
  return dumped({{"parsimony_blocks", 1}, {"blocks", rows}});
}

}  // namespace parsimony
