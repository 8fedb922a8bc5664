#include <string_view>

#include "parsimony/report/sweep/format.h"
#include "parsimony/report/sweep/summary.h"
#include "parsimony/report/text.h"

namespace parsimony {
namespace {

/// Names come from files, so markup is escaped.
std::string plain(std::string_view text) {
  constexpr std::string_view kMarkup = "\\`*_{}[]<>()#+!|~&$";
  std::string out;
  for (const char c : printable(text)) {
    if (kMarkup.find(c) != std::string_view::npos) out += '\\';
    out += c;
  }
  return out;
}

/// Indented instead of fenced, since the text could close a fence.
std::string code(std::string_view text) { return "    " + printable(text) + "\n"; }

using Cells = std::vector<std::string>;

std::string line_of(const Cells& cells) {
  std::string text = "|";
  for (const std::string& cell : cells) text += " " + cell + " |";
  return text + "\n";
}

/// The first `left` columns are text.
std::string table(const Cells& names, size_t left, const std::vector<Cells>& rows) {
  std::string text = line_of(names) + "|";
  for (size_t i = 0; i < names.size(); ++i) text += i < left ? "---|" : "--:|";
  text += "\n";
  for (const Cells& row : rows) text += line_of(row);
  return text + "\n";
}

std::string headline_table(const SweepReport& report) {
  std::vector<Cells> rows;
  for (const Headline& line : report.headline) {
    rows.push_back({line.what + (line.note.empty() ? "" : ", " + line.note), line.before,
                    line.after, line.ratio});
  }
  return table({"", "before", "after", "ratio"}, 1, rows);
}

std::string settings_table(const SweepReport& report) {
  std::vector<Cells> rows;
  for (const SweepSetting& setting : report.settings) {
    rows.push_back(
        {plain(setting.series), sparsity_text(setting.sparsity),
         std::to_string(setting.rows.size()),
         with_thousands(static_cast<int64_t>(setting.params.mean)), macs_text(setting.macs.mean),
         seconds_text(setting.seconds.mean),
         setting.train_speedup ? times_text(setting.train_speedup->mean) : "–",
         score_text(setting.accuracy.mean, mean_of(setting.perplexity)),
         accuracy_text(setting.accuracy.low) + " to " + accuracy_text(setting.accuracy.high),
         setting.sparsity == 0 ? "–" : change_text(setting.change.mean),
         setting.front ? "yes" : ""});
    for (const std::string& cell : metric_cells(setting)) rows.back().push_back(cell);
  }
  Cells names = {"series",     "sparsity",    "seeds",
                 "parameters", "MACs",        "training time",
                 "speedup",    "accuracy",    "lowest to highest seed",
                 "change",     "on the front"};
  for (const std::string& metric : report.metrics) names.push_back(plain(metric));
  return table(names, 1, rows);
}

std::string proof_text(const LedgerPoint& point) {
  if (!point.proof) return "Nothing was pruned, so there is nothing to prove.\n";
  const LedgerPoint::Evidence& proof = *point.proof;
  if (!proof.ran) return "Not proven: " + plain(proof.reason) + ".\n";
  return std::string(proof.holds() ? "Proven" : "**Differs**") + ": largest difference " +
         scientific_text(proof.difference) + " (allowed " + scientific_text(proof.tolerance) +
         ") from " + plain(proof.against) + ".\n";
}

std::string layers_table(const LedgerPoint& point) {
  std::vector<Cells> rows;
  for (const LedgerPoint::Layer& layer : point.layers) {
    rows.push_back({plain(layer.name), plain(layer.op), with_thousands(layer.before),
                    with_thousands(layer.after)});
  }
  return table({"layer", "operator", "channels before", "after"}, 2, rows);
}

std::string unpruned_table(const LedgerPoint& point) {
  std::vector<Cells> rows;
  for (const UnprunedDim& kept : point.unpruned_dims) {
    rows.push_back({plain(kept.axis), plain(kept.reason)});
  }
  return table({"is not pruned", "why"}, 2, rows);
}

}  // namespace

std::string to_markdown(const SweepReport& report) {
  const LedgerPoint& point = report.rows[report.selected].point;
  std::string text = "# " + plain(report.title) + "\n\n" + plain(report.selected_name) + ": " +
                     plain(report.selected_because) + ".\n\n" + headline_table(report);
  for (const std::string& note : report.notes) text += "- " + plain(note) + "\n";
  if (!report.notes.empty()) text += "\n";
  text +=
      "## All settings\n\nMeans over seeds. Training time is that of the epochs after "
      "pruning.\n\n" +
      settings_table(report);
  text += "## Layers\n\n" + layers_table(point);
  text += "## Proof\n\n" + proof_text(point) + "\n";
  if (!point.unpruned_dims.empty()) text += unpruned_table(point);
  text += "## Again\n\n" + code(point.command) + "\nParsimony " + plain(point.version) + " on " +
          plain(point.machine.processor) + ", " + counted(point.machine.threads, "thread") +
          " of " + counted(point.machine.cores, "core") + ", " + plain(point.machine.blas) + ".\n";
  if (point.ranks) text += "Ranks: " + ranks_text(point) + ".\n";
  return text;
}

}  // namespace parsimony
