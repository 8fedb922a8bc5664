#include "parsimony/report/bench.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "parsimony/report/json_impl.h"
#include "parsimony/report/text.h"

namespace parsimony {
namespace {

constexpr const char* kNoDifference = "no difference beyond noise";

std::string formatted(const char* format, double number) {
  char text[64];
  std::snprintf(text, sizeof text, format, number);
  return text;
}

/// Three digits: "1.23", "12.3", "1,234".
std::string three_digits(double number) {
  if (number >= 999.5) return with_thousands(std::llround(number));
  return formatted(number < 9.995 ? "%.2f" : number < 99.95 ? "%.1f" : "%.0f", number);
}

std::string milliseconds(double seconds) {
  if (seconds >= 1e-3) return three_digits(1e3 * seconds);
  return formatted(seconds < 1e-5 ? "%.5f" : "%.3f", 1e3 * seconds);
}

std::string spread_text(const machine::Summary& time) {
  return milliseconds(time.low) + ".." + milliseconds(time.high);
}

std::string speedup_text(const BenchRow& row) {
  if (!row.speedup) return "";
  const machine::Ratio& ratio = *row.speedup;
  if (!std::isfinite(ratio.high)) return three_digits(ratio.median) + "x, too few rounds to tell";
  if (!ratio.differs()) {
    // Three digits after the point: how little it would be.
    return std::string(kNoDifference) + " (" + formatted("%.3f", ratio.low) + ".." +
           formatted("%.3f", ratio.high) + ")";
  }
  return three_digits(ratio.median) + "x (" + three_digits(ratio.low) + ".." +
         three_digits(ratio.high) + ")";
}

/// The first line of what may be a page.
std::string brief(const std::string& text) { return text.substr(0, text.find('\n')); }

std::string table_of(const BenchReport& report) {
  using enum Table::Align;
  Table table(
      {"engine", "batch", "model", "median ms", "quartiles", "samples/s", "runs", "speedup"},
      {kLeft, kRight, kLeft, kRight, kLeft, kRight, kRight, kLeft});
  const BenchRow* last = nullptr;
  for (const BenchRow& row : report.rows) {
    const bool same = last != nullptr && last->engine == row.engine && last->batch == row.batch;
    if (last != nullptr && !same) table.rule();
    last = &row;
    const std::string engine = same ? "" : report.engines[row.engine].name;
    const std::string batch = same ? "" : with_thousands(row.batch);
    const std::string model = printable(report.models[row.model].label);
    if (row.refused.empty()) {
      table.add({engine, batch, model, milliseconds(row.time.median), spread_text(row.time),
                 three_digits(row.throughput()), with_thousands(row.time.runs), speedup_text(row)});
    } else {
      table.add({engine, batch, model, "-", "does not run", "", "", ""});
    }
  }
  return table.text();
}

/// "a.onnx on libtorch, batch 64: WHY", without the batch if it is the same with all of them.
std::string refusals(const BenchReport& report) {
  std::vector<std::string> lines;
  for (const BenchRow& row : report.rows) {
    if (row.refused.empty()) continue;
    const bool always =
        std::all_of(report.rows.begin(), report.rows.end(), [&](const BenchRow& other) {
          return other.model != row.model || other.engine != row.engine ||
                 other.refused == row.refused;
        });
    std::string line = "note: " + printable(report.models[row.model].label) + " on " +
                       report.engines[row.engine].name;
    if (!always) line += ", batch " + with_thousands(row.batch);
    line += ": " + printable(brief(row.refused)) + "\n";
    if (std::find(lines.begin(), lines.end(), line) == lines.end()) lines.push_back(line);
  }
  std::string text;
  for (const std::string& line : lines) text += line;
  return text;
}

std::string machine_text(const BenchReport& report) {
  std::string text = "Measured with " + counted(report.threads, "thread");
  for (const BenchEngine& engine : report.engines) {
    text += ", " + engine.name + " " + engine.version;
  }
  text += ".\n";
  for (const machine::Finding& finding : report.facts.findings) {
    if (finding.subject != "processor" && finding.subject != "cores" && finding.subject != "BLAS") {
      continue;
    }
    text += finding.subject + ": " + printable(finding.found) + "\n";
  }
  return text;
}

Json ratio_json(const machine::Ratio& ratio) {
  const bool known = std::isfinite(ratio.high);
  return {{"median", ratio.median},
          {"low", known ? Json(ratio.low) : Json()},
          {"high", known ? Json(ratio.high) : Json()},
          {"turns", ratio.pairs},
          {"differs", ratio.differs()}};
}

Json row_json(const BenchReport& report, const BenchRow& row) {
  Json json = {{"model", row.model},
               {"engine", report.engines[row.engine].name},
               {"batch", row.batch},
               {"refused", nullptr}};
  if (!row.refused.empty()) {
    json["refused"] = row.refused;
    return json;
  }
  json["warm_up"] = row.warm_up;
  json["runs"] = row.time.runs;
  json["median_seconds"] = row.time.median;
  json["lower_quartile_seconds"] = row.time.low;
  json["upper_quartile_seconds"] = row.time.high;
  json["samples_per_second"] = row.throughput();
  json["speedup"] = row.speedup ? ratio_json(*row.speedup) : Json();
  return json;
}

Json model_json(const BenchModel& model) {
  Json inputs = Json::array();
  for (const BenchInput& input : model.inputs) {
    inputs.push_back(
        {{"name", input.name}, {"type", name_of(input.dtype)}, {"shape", input.shape}});
  }
  return {{"path", model.path},
          {"sha256", model.sha256},
          {"bytes", model.bytes},
          {"inputs", std::move(inputs)}};
}

Json machine_json(const machine::MachineReport& facts) {
  Json json = {{"processor", facts.processor.model},
               {"vectors", machine::name_of(vectors_of(facts.processor))},
               {"cores", facts.cores.usable()},
               {"load", facts.cores.load},
               {"blas", nullptr}};
  if (const auto& blas = facts.blas) {
    json["blas"] = {{"library", blas->library},
                    {"version", blas->version},
                    {"kernel", blas->kernel},
                    {"threading", blas->threading}};
  }
  return json;
}

}  // namespace

double BenchRow::throughput() const {
  return time.median > 0 ? static_cast<double>(batch) / time.median : 0;
}

std::string to_text(const BenchReport& report) {
  std::string text = table_of(report) + "\n" + refusals(report);
  for (const std::string& note : report.notes) text += "note: " + printable(brief(note)) + "\n";
  return text + machine_text(report);
}

std::string to_json(const BenchReport& report) {
  Json models = Json::array();
  for (const BenchModel& model : report.models) models.push_back(model_json(model));
  Json engines = Json::array();
  for (const BenchEngine& engine : report.engines) {
    engines.push_back({{"name", engine.name}, {"version", engine.version}, {"path", engine.path}});
  }
  Json rows = Json::array();
  for (const BenchRow& row : report.rows) rows.push_back(row_json(report, row));
  const Json document = {{"parsimony_bench", 1},
                         {"command", report.command},
                         {"threads", report.threads},
                         {"seed", report.seed},
                         {"machine", machine_json(report.facts)},
                         {"engines", std::move(engines)},
                         {"models", std::move(models)},
                         {"rows", std::move(rows)},
                         {"notes", report.notes}};
  return dumped(document);
}

}  // namespace parsimony
