#include "parsimony/report/recovery.h"

#include <cstdio>

#include "parsimony/report/text.h"

namespace parsimony {
namespace {

std::string with(const char* format, double value) {
  char text[32];
  std::snprintf(text, sizeof text, format, value);
  return text;
}

std::string percent(const std::optional<double>& accuracy) {
  return accuracy ? with("%.2f%%", 100 * *accuracy) : "-";
}

}  // namespace

std::string to_text(const RecoveryReport& report) {
  using enum Table::Align;
  Table table({"network", "output error", "accuracy", "layers", "seconds"},
              {kLeft, kRight, kRight, kRight, kRight});
  const auto add = [&](const std::string& name, const RecoveryState& state,
                       const std::string& layers, const std::string& seconds) {
    table.add({name, with("%.4f", state.error), percent(state.accuracy), layers, seconds});
  };
  add("dense", {0, report.dense_accuracy}, "", "");
  add("pruned", report.before, "", "");
  for (const RecoveryStep& step : report.steps) {
    add("+ " + std::string(name_of(step.method)), step.after, with_thousands(step.layers),
        with("%.1f", step.seconds));
  }
  std::string text = table.text() + "Output error: |small - dense| / |dense| over " +
                     counted(report.samples, "calibration sample") + "; accuracy on " +
                     counted(report.test_samples, "test sample") + ".\n";
  for (const std::string& note : report.notes) text += "note: " + printable(note) + "\n";
  return text;
}

}  // namespace parsimony
