#include "parsimony/report/proof.h"

#include <algorithm>
#include <cstdio>
#include <vector>

#include "parsimony/report/text.h"

namespace parsimony {
namespace {

constexpr size_t kMostChoices = 5;  // rows of a table for people

std::string brief(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1e", value);
  return text;
}

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
  const std::string blocks = plan.blocks.empty() ? "" : "whose removed blocks add nothing";
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
          original(proof, plan) + ", on " + counted(proof.inputs, "random input") + ".\n";
  if (!proof.choices.empty()) {
    text += "note: the small network chose from the original's numbers at " +
            counted(std::ssize(proof.choices), "place") +
            " such as TopK or a comparison, where a last bit decides; what it had itself to choose "
            "from was compared as well\n";
  }
  for (const std::string& note : proof.notes) text += "note: " + printable(note) + "\n";
  if (all) text += output_table(proof);
  return text;
}

}  // namespace parsimony
