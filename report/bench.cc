#include "parsimony/report/bench.h"

#include <algorithm>
#include <cmath>

#include "parsimony/report/json_impl.h"
#include "parsimony/report/text.h"

namespace parsimony {
namespace {

constexpr const char* kNoDifference = "no difference beyond noise";

/// Returns three digits: "1.23", "12.3", "1,234".
std::string three_digits(double number) {
  if (number >= 999.5) return with_thousands(std::llround(number));
  return formatted(number < 9.995 ? "%.2f" : number < 99.95 ? "%.1f" : "%.0f", number);
}

std::string milliseconds(double seconds) {
  if (seconds >= 1e-3) return three_digits(1e3 * seconds);
  return formatted(seconds < 1e-5 ? "%.5f" : "%.3f", 1e3 * seconds);
}

std::string megabytes(int64_t bytes) {
  constexpr double kMega = 1e6;
  return three_digits(static_cast<double>(bytes) / kMega);
}

std::string spread_text(const machine::Summary& time) {
  return milliseconds(time.low) + ".." + milliseconds(time.high);
}

std::string speedup_text(const BenchRow& row) {
  if (!row.speedup) return "";
  const machine::Ratio& ratio = *row.speedup;
  if (!std::isfinite(ratio.high)) return three_digits(ratio.median) + "x, too few rounds to tell";
  if (!ratio.differs()) {
    // Three decimals, to show how small the difference would be.
    return std::string(kNoDifference) + " (" + formatted("%.3f", ratio.low) + ".." +
           formatted("%.3f", ratio.high) + ")";
  }
  return three_digits(ratio.median) + "x (" + three_digits(ratio.low) + ".." +
         three_digits(ratio.high) + ")";
}

/// Returns the first line of a text.
std::string brief(const std::string& text) { return text.substr(0, text.find('\n')); }

std::string table_of(const BenchReport& report) {
  using enum Table::Align;
  const bool memory = std::ranges::any_of(
      report.rows, [](const BenchRow& row) { return row.peak_bytes.has_value(); });
  std::vector<std::string> head = {"engine",    "batch",     "model", "median ms",
                                   "quartiles", "samples/s", "runs"};
  std::vector<Table::Align> align = {kLeft, kRight, kLeft, kRight, kLeft, kRight, kRight};
  if (memory) {
    head.push_back("memory MB");
    align.push_back(kRight);
  }
  head.push_back("speedup");
  align.push_back(kLeft);
  Table table(std::move(head), std::move(align));
  const BenchRow* last = nullptr;
  for (const BenchRow& row : report.rows) {
    const bool same = last != nullptr && last->engine == row.engine && last->batch == row.batch;
    if (last != nullptr && !same) table.rule();
    last = &row;
    const std::string engine = same ? "" : report.engines[row.engine].name;
    const std::string batch = same ? "" : with_thousands(row.batch);
    const std::string model = printable(report.models[row.model].label);
    const bool runs = row.refused.empty();
    std::vector<std::string> cells = {engine, batch, model};
    if (runs) {
      cells.insert(cells.end(), {milliseconds(row.time.median), spread_text(row.time),
                                 three_digits(row.throughput()), with_thousands(row.time.runs)});
    } else {
      cells.insert(cells.end(), {"-", "does not run", "", ""});
    }
    if (memory) cells.push_back(row.peak_bytes ? megabytes(*row.peak_bytes) : "");
    cells.push_back(runs ? speedup_text(row) : "");
    table.add(std::move(cells));
  }
  return table.text();
}

/// Returns "a.onnx on libtorch, batch 64: WHY", without the batch if all of them failed alike.
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
  if (report.engines.size() == 1 && report.engines[0].name == "command") {
    return "Measured by " + printable(report.engines[0].path) + "\n";
  }
  std::string text = "Measured with " + counted(report.threads, "thread");
  for (const BenchEngine& engine : report.engines) {
    text += ", " + engine.name + " " + engine.version;
  }
  text += ".\n";
  for (const machine::Finding& finding : report.facts.findings) {
    if (finding.subject != "processor" && finding.subject != "cores") {
      continue;
    }
    text += finding.subject + ": " + printable(finding.found) + "\n";
  }
  return text;
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

void describe(JsonWriter& json, const BenchInput& input) {
  json("name", input.name)("type", name_of(input.dtype))("shape", input.shape);
}

void describe(JsonWriter& json, const BenchModel& model) {
  json("path", model.path)("sha256", model.sha256)("bytes", model.bytes)("inputs", model.inputs);
}

void describe(JsonWriter& json, const BenchEngine& engine) {
  json("name", engine.name)("version", engine.version)("path", engine.path);
}

void describe(JsonWriter& json, const machine::Ratio& ratio) {
  const bool known = std::isfinite(ratio.high);
  json("median", ratio.median)("low", known ? Json(ratio.low) : Json())("high", ratio.high);
  json("pairs", ratio.pairs)("differs", ratio.differs());
}

void describe(JsonWriter& json, const machine::MachineReport& facts) {
  json("processor", facts.processor.model);
  json("vectors", machine::name_of(vectors_of(facts.processor)));
  json("cores", facts.cores.usable())("load", facts.cores.load);
}

Json row_json(const BenchReport& report, const BenchRow& row) {
  JsonWriter json;
  json("model", row.model)("engine", report.engines[row.engine].name)("batch", row.batch);
  json("refused", row.refused.empty() ? Json() : Json(row.refused));
  if (!row.refused.empty()) return json.taken();
  json("warm_up", row.warm_up)("runs", row.time.runs)("median_seconds", row.time.median);
  json("lower_quartile_seconds", row.time.low)("upper_quartile_seconds", row.time.high);
  json("samples_per_second", row.throughput())("speedup", row.speedup);
  if (row.peak_bytes) json("peak_bytes", *row.peak_bytes);
  return json.taken();
}

void describe(JsonWriter& json, const BenchReport& report) {
  json("command", report.command)("threads", report.threads)("seed", report.seed);
  json("machine", report.facts)("engines", report.engines)("models", report.models);
  Json rows = Json::array();
  for (const BenchRow& row : report.rows) rows.push_back(row_json(report, row));
  json("rows", rows)("notes", report.notes);
}

std::string to_json(const BenchReport& report) { return document_of("parsimony_bench", 2, report); }

}  // namespace parsimony
