#include "parsimony/report/sensitivity.h"

#include <cmath>

#include "parsimony/report/json_impl.h"
#include "parsimony/report/text.h"

namespace parsimony {
namespace {

constexpr size_t kMostNamed = 2;

std::string measured(const SensitivityReport& report) {
  std::string text = printable(report.measure);
  if (report.samples > 0) {
    text += " on " + counted(report.samples, "sample") + " of " + printable(report.data);
  }
  if (report.accuracy >= 0) {
    text += ", accuracy before " + formatted("%.1f%%", 100 * report.accuracy);
  }
  return text + "; channels ranked by " + printable(report.criterion) + ".\n";
}

const std::vector<double>& widest(const SensitivityReport& report) {
  static const std::vector<double> kNone;
  const std::vector<double>* most = &kNone;
  for (const SensitivityRow& row : report.rows) {
    if (row.ratios.size() > most->size()) most = &row.ratios;
  }
  return *most;
}

/// Rounds down: a ratio above the proposed one could remove an additional channel.
double rounded(double ratio) { return std::floor(ratio * 1e4) / 1e4; }

}  // namespace

std::string to_text(const SensitivityReport& report) {
  using enum Table::Align;
  std::vector<std::string> head = {"group", "size"};
  std::vector<Table::Align> align = {kLeft, kRight};
  const std::vector<double>& ratios = widest(report);
  for (const double ratio : ratios) {
    head.push_back(formatted("%g", ratio));
    align.push_back(kRight);
  }
  if (report.ratio > 0) {
    head.emplace_back("proposed");
    align.push_back(kRight);
  }
  head.emplace_back("layers");
  align.push_back(kLeft);
  Table table(head, align);
  for (const SensitivityRow& row : report.rows) {
    std::vector<std::string> cells = {row.id, std::to_string(row.size)};
    for (size_t i = 0; i < ratios.size(); ++i) {
      cells.push_back(i < row.errors.size() ? formatted("%.3f", row.errors[i]) : "-");
    }
    if (report.ratio > 0) cells.push_back(formatted("%.2f", row.proposed));
    cells.push_back(printable(listed(row.layers, kMostNamed)));
    table.add(std::move(cells));
  }
  std::string text = table.text() + "Numbers are the " + measured(report);
  if (report.ratio > 0) {
    text += "Proposed: " + formatted("%.1f%%", 100 * report.reached) +
            " of the channels, none of the groups alone beyond " + formatted("%.3g", report.level) +
            ".\n";
  }
  return text;
}

void describe(JsonWriter& json, const SensitivityReport& report) {
  json("command", report.command)("model", report.model)("criterion", report.criterion);
  json("measure", report.measure)("data", report.data)("samples", report.samples);
  if (report.accuracy >= 0) json("accuracy", report.accuracy);
  if (report.ratio > 0) {
    json.inner("proposal", [&](JsonWriter& inner) {
      inner("ratio", report.ratio)("reached", report.reached)("level", report.level);
    });
  }
  std::vector<Json> groups;
  for (const SensitivityRow& row : report.rows) {
    JsonWriter group;
    group("id", row.id)("size", row.size)("layers", row.layers);
    group("ratios", row.ratios)("errors", row.errors);
    if (report.ratio > 0) group("proposed", row.proposed);
    groups.push_back(group.taken());
  }
  json("groups", groups);
}

std::string to_json(const SensitivityReport& report) {
  return document_of("parsimony_sensitivity", 1, report);
}

std::string to_config(const SensitivityReport& report) {
  Json entries = Json::array();
  for (const SensitivityRow& row : report.rows) {
    if (rounded(row.proposed) * row.size < 1) continue;
    entries.push_back({{"op_names", row.layers}, {"sparse_ratio", rounded(row.proposed)}});
  }
  return dumped(Json{{"criterion", report.criterion}, {"config_list", std::move(entries)}});
}

}  // namespace parsimony
