#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <limits>
#include <map>
#include <optional>
#include <string_view>

#include "parsimony/report/event_file.h"
#include "parsimony/report/parts_impl.h"
#include "parsimony/report/sweep/summary.h"
#include "parsimony/report/text.h"

namespace parsimony {
namespace {

/// Returns the shortest digits that round-trip; nothing for non-finite values.
std::string number(double value) {
  if (!std::isfinite(value)) return {};
  std::array<char, 64> text{};
  const auto [end, error] = std::to_chars(text.data(), text.data() + text.size(), value);
  return {text.data(), end};
}

/// @source RFC 4180
std::string quoted(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"') out += '"';
    out += c;
  }
  return out + '"';
}

/// The names of the columns, and the cells of a line under them.
class Line {
 public:
  Line& operator()(const std::string& name, const std::string& cell) {
    const char* gap = names_.empty() ? "" : ",";
    names_ += gap + quoted(name);
    cells_ += gap + quoted(cell);
    return *this;
  }
  Line& operator()(const std::string& name, double value) { return (*this)(name, number(value)); }
  Line& operator()(const std::string& name, int64_t value) {
    return (*this)(name, std::to_string(value));
  }
  Line& operator()(const std::string& name, const LedgerPoint::Pair& pair) {
    return (*this)(name + "_before", pair.before)(name + "_after", pair.after);
  }
  Line& operator()(const std::string& name, const LedgerPoint::Score& score) {
    constexpr double kNothing = std::numeric_limits<double>::quiet_NaN();
    (*this)(name + "_correct", score.correct)(name + "_total", score.total);
    return (*this)(name + "_perplexity", score.perplexity.value_or(kNothing));
  }
  Line& operator()(const std::string& name, const LedgerPoint::Phases& phases) {
    for (const TrainingPhase& phase : kTrainingPhases) {
      (*this)(name + "_" + phase.name + "_s", phases.*phase.seconds);
    }
    return *this;
  }
  std::string names() const { return names_ + "\r\n"; }
  std::string cells() const { return cells_ + "\r\n"; }

 private:
  std::string names_, cells_;
};

Line line_of(const SweepRow& row, const std::vector<std::string>& metrics) {
  constexpr double kNothing = std::numeric_limits<double>::quiet_NaN();
  const LedgerPoint& point = row.point;
  const auto& latency = point.latency_ms;
  const bool proven = point.proof && point.proof->ran;
  Line line;
  line("key", point.key)("series", row.series)("criterion", point.criterion);
  line("sparsity", point.sparsity)("seed", std::to_string(point.seed));
  line("model", point.model.name)("data", point.data.name);
  line("train_examples", point.data.train)("test_examples", point.data.test);
  line("params", point.params)("macs", point.macs)("bytes", point.bytes);
  line("latency_before_ms", latency ? latency->before : kNothing);
  line("latency_after_ms", latency ? latency->after : kNothing);
  line("latency_batch", latency ? std::to_string(latency->batch) : "");
  line("warm_up", point.warm_up)("prune_s", point.prune_seconds)("train", point.train);
  line("evaluate_s", point.evaluate_seconds)("train_s", point.train.total());
  line("train_speedup", row.train_speedup.value_or(kNothing));
  line("epochs", int64_t{std::ssize(point.epochs)});
  line("before", point.before)("pruned", point.pruned)("after", point.after);
  line("compared_with", row.dense ? "dense" : point.sparsity > 0 ? "before" : "itself");
  line("compared", row.reference)("accuracy_change", row.change);
  line("proof_difference", proven ? point.proof->difference : kNothing);
  line("proof_tolerance", proven ? point.proof->tolerance : kNothing);
  line("processor", point.machine.processor)("cores", int64_t{point.machine.cores});
  line("threads", int64_t{point.machine.threads});
  line("version", point.version);
  for (const std::string& name : metrics) line(name, metric_of(point, name));
  return line;
}

}  // namespace

std::string to_csv(const SweepReport& report) {
  const SweepRow none;  // a temporary misleads GCC 12
  std::string text = line_of(none, report.metrics).names();
  for (const SweepRow& row : report.rows) text += line_of(row, report.metrics).cells();
  return text;
}

void describe(JsonWriter& json, const Spread& spread) {
  json("mean", spread.mean)("low", spread.low)("high", spread.high);
}

void describe(JsonWriter& json, const Headline& line) {
  json("what", line.what)("before", line.before)("after", line.after);
  json("ratio", line.ratio)("note", line.note);
}

namespace {

std::vector<Json> settings_json(const SweepReport& report) {
  std::vector<Json> settings;
  for (const SweepSetting& setting : report.settings) {
    std::vector<uint64_t> seeds;
    for (const size_t r : setting.rows) seeds.push_back(report.rows[r].point.seed);
    JsonWriter json;
    json("series", setting.series)("run", setting.run)("sparsity", setting.sparsity);
    json("seeds", seeds)("params", setting.params)("macs", setting.macs);
    json("macs_ratio", setting.macs_ratio)("accuracy", setting.accuracy)("change", setting.change);
    json.maybe("perplexity", setting.perplexity);
    json.some("metrics", setting.metrics);
    json("train_seconds", setting.seconds)("train_speedup", setting.train_speedup);
    json("phases", setting.phases)("front", setting.front);
    settings.push_back(json.taken());
  }
  return settings;
}

Json selected_json(const SweepReport& report) {
  const SweepRow& row = report.rows[report.selected];
  JsonWriter json;
  json("key", row.point.key)("series", row.series)("sparsity", row.point.sparsity);
  json("name", report.selected_name)("because", report.selected_because);
  return json.taken();
}

Json compared_json(const SweepReport& report, const SweepRow& row) {
  JsonWriter json;
  json("with", row.dense ? "dense" : row.point.sparsity > 0 ? "before" : "itself");
  json("key", row.dense ? Json(report.rows[*row.dense].point.key) : Json());
  json("correct", row.reference.correct)("total", row.reference.total);
  json("change", row.change)("train_speedup", row.train_speedup);
  return json.taken();
}

}  // namespace

std::string to_json(const SweepReport& report) {
  std::vector<Json> points;
  for (const SweepRow& row : report.rows) {
    Json& point = points.emplace_back(Json::parse(to_json_line(row.point)));
    point["series"] = row.series;
    point["compared"] = compared_json(report, row);
  }
  JsonWriter json;
  json("parsimony_sweep", 1)("title", report.title)("notes", report.notes);
  json("selected", selected_json(report))("headline", report.headline);
  json.some("metrics", report.metrics);
  json("settings", settings_json(report))("points", points);
  return dumped(json.taken());
}

std::string chart_json(const SweepReport& report) {
  std::vector<Json> points;
  for (const SweepRow& row : report.rows) {
    JsonWriter json;
    json("series", row.series)("sparsity", row.point.sparsity)("seed", row.point.seed);
    json("seconds", row.point.train.total())("accuracy", row.point.after.share());
    points.push_back(json.taken());
  }
  JsonWriter json;
  json("selected", selected_json(report))("settings", settings_json(report))("points", points);
  json("layers", report.rows[report.selected].point.layers);
  return json.taken().dump(-1, ' ', false, Json::error_handler_t::replace);
}

namespace {

/// Escapes markup, as names come from files.
std::string plain(std::string_view text) {
  constexpr std::string_view kMarkup = "\\`*_{}[]<>()#+!|~&$";
  std::string out;
  for (const char c : printable(text)) {
    if (kMarkup.find(c) != std::string_view::npos) out += '\\';
    out += c;
  }
  return out;
}

/// Indents code instead of fencing it, since the text could close a fence.
std::string code(std::string_view text) { return "    " + printable(text) + "\n"; }

using Cells = std::vector<std::string>;

std::string line_of(const Cells& cells) {
  std::string text = "|";
  for (const std::string& cell : cells) text += " " + cell + " |";
  return text + "\n";
}

/// Renders a table; the first `left` columns are text.
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
          " of " + counted(point.machine.cores, "core") + ".\n";
  if (point.ranks) text += "Ranks: " + ranks_text(point) + ".\n";
  return text;
}

namespace {

/// Returns "l1-seed0", usable as a folder name.
std::string run_name(const SweepRow& row) {
  std::string name = row.series + "-seed" + std::to_string(row.point.seed);
  std::ranges::replace_if(
      name, [](unsigned char c) { return c < ' ' || c == '/'; }, '_');
  return name;
}

/// Returns the position on the axis.
int64_t percent_of(const SweepRow& row) { return std::llround(100 * row.point.sparsity); }

std::vector<Scalar> scalars_of(const SweepRow& row, const std::vector<std::string>& metrics) {
  const LedgerPoint& point = row.point;
  std::vector<Scalar> scalars = {{"test/accuracy", point.after.share()},
                                 {"test/accuracy_change", row.change},
                                 {"train/seconds", point.train.total()}};
  const auto add = [&](const char* tag, int64_t count) {
    if (count > 0) scalars.push_back({tag, static_cast<double>(count)});
  };
  add("model/parameters", point.params.after);
  add("model/macs", point.macs.after);
  add("model/bytes", point.bytes.after);
  if (point.after.perplexity) scalars.push_back({"test/perplexity", *point.after.perplexity});
  if (point.latency_ms) scalars.push_back({"model/latency_ms", point.latency_ms->after});
  for (const std::string& name : metrics) {
    scalars.push_back({"metric/" + name, metric_of(point, name)});
  }
  std::erase_if(scalars, [](const Scalar& scalar) { return std::isnan(scalar.value); });
  return scalars;
}

}  // namespace

void write_events(const SweepReport& report, const std::string& folder) {
  std::map<std::string, std::optional<EventFile>> runs;
  for (const SweepRow& row : report.rows) {
    const auto add = [&](EventFile& run, const SweepRow& at) {
      run.add(percent_of(at), scalars_of(at, report.metrics));
    };
    const std::string name = run_name(row);
    std::optional<EventFile>& run = runs[name];
    if (!run) {
      run.emplace((std::filesystem::path(folder) / name).string());
      if (row.dense) add(*run, report.rows[*row.dense]);
    }
    add(*run, row);
  }
}

}  // namespace parsimony
