#include "parsimony/report/depth.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "parsimony/report/depth_impl.h"
#include "parsimony/report/text.h"

namespace parsimony {
namespace {

std::string brief(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.4f", value);
  return text;
}

Json number(double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); }

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
               brief(block.influence), fate(block)});
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
               with_thousands(candidate.cost.macs), brief(candidate.error),
               candidate.met ? note : "misses the budget"});
  }
  return table.text();
}

}  // namespace

Json to_object(const DepthReport& report) {
  Json blocks = Json::array();
  for (const BlockOutcome& block : report.blocks) {
    blocks.push_back({{"add", block.add},
                      {"label", block.label},
                      {"influence", number(block.influence)},
                      {"params", block.cost.params},
                      {"macs", block.cost.macs},
                      {"nodes", block.nodes},
                      {"excluded", block.excluded},
                      {"removed", block.removed}});
  }
  Json candidates = Json::array();
  for (const DepthCandidate& candidate : report.candidates) {
    candidates.push_back({{"removed", candidate.removed},
                          {"params", candidate.cost.params},
                          {"macs", candidate.cost.macs},
                          {"output_error", number(candidate.error)},
                          {"met", candidate.met}});
  }
  return {{"blocks", std::move(blocks)}, {"candidates", std::move(candidates)}};
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
  if (report.blocks.empty()) return "No residual block that could go as a whole.\n";
  return table.text();
}

std::string blocks_json(const DepthReport& report) {
  Json rows = Json::array();
  for (const BlockOutcome& block : report.blocks) {
    rows.push_back({{"add", block.add},
                    {"label", block.label},
                    {"nodes", block.nodes},
                    {"params", block.cost.params},
                    {"macs", block.cost.macs}});
  }
  return dumped({{"parsimony_blocks", 1}, {"blocks", std::move(rows)}});
}

}  // namespace parsimony
