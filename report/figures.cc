#include "parsimony/report/figures.h"

#include <algorithm>
#include <cmath>

#include "parsimony/base/errors.h"
#include "parsimony/base/json_reader.h"
#include "parsimony/report/text.h"

namespace parsimony {
namespace {

using Kind = Figure::Kind;

std::optional<double> number_or_none(const JsonReader& at, std::string_view key) {
  const auto found = at.find(key);
  if (!found || found->is_null()) return {};
  return found->number();
}

/// Reads {"before": …, "after": …}.
Figure counted_figure(const std::string& name, const JsonReader& pair) {
  return {name, Kind::kCount, pair.at("before").number(), pair.at("after").number()};
}

Figure proof_of(const JsonReader& proof) {
  std::optional<double> holds;
  if (proof.at("ran").flag()) holds = proof.at("holds").flag() ? 1 : 0;
  return {"proof", Kind::kProof, {}, holds, false};
}

ReportFigures of_prune(const JsonReader& root) {
  ReportFigures report{root.at("result").at("path").text(), {}};
  std::vector<Figure>& figures = report.figures;
  figures.push_back(counted_figure("parameters", root.at("params")));
  figures.push_back(counted_figure("multiply-adds", root.at("macs")));
  figures.push_back({"bytes of the file", Kind::kCount, root.at("source").at("bytes").number(),
                     root.at("result").at("bytes").number()});
  if (const auto latency = root.find("latency")) {
    figures.push_back({"latency", Kind::kSeconds, latency->at("dense_seconds").number(),
                       latency->at("measured_seconds").number()});
  }
  if (const auto metrics = root.find("metrics")) {
    for (const JsonReader metric : metrics->list()) {
      figures.push_back({metric.at("command").text(), Kind::kNumber,
                         number_or_none(metric, "before"), number_or_none(metric, "after"),
                         metric.at("lower_is_better").flag()});
    }
  }
  if (const auto recovery = root.find("recovery"); recovery && recovery->at("steps").size() > 0) {
    std::optional<double> last;
    for (const JsonReader step : recovery->at("steps").list()) {
      last = number_or_none(step, "output_error");
    }
    if (last) figures.push_back({"output error", Kind::kNumber, {}, last});
  }
  figures.push_back(proof_of(root.at("proof")));
  return report;
}

ReportFigures of_sweep(const JsonReader& root) {
  ReportFigures report{root.at("title").text(), {}};
  for (const JsonReader setting : root.at("settings").list()) {
    const std::string name =
        setting.at("series").text() + " at " + sparsity_text(setting.at("sparsity").number(kShare));
    const auto mean = [&](const char* key) { return setting.at(key).at("mean").number(); };
    report.figures.push_back({name + ": parameters", Kind::kCount, {}, mean("params")});
    report.figures.push_back({name + ": accuracy", Kind::kFraction, {}, mean("accuracy"), false});
    report.figures.push_back({name + ": training", Kind::kSeconds, {}, mean("train_seconds")});
  }
  return report;
}

const Figure* find(const ReportFigures* report, const std::string& name) {
  if (report == nullptr) return nullptr;
  const auto found = std::ranges::find(report->figures, name, &Figure::name);
  return found == report->figures.end() ? nullptr : &*found;
}

std::string text_of(const Figure& figure, const std::optional<double>& value) {
  if (!value) return "–";
  switch (figure.kind) {
    case Kind::kCount:
      return with_thousands(std::llround(*value));
    case Kind::kNumber:
      return formatted("%.4g", *value);
    case Kind::kFraction:
      return accuracy_text(*value);
    case Kind::kSeconds:
      return duration(*value);
    case Kind::kProof:
      return *value > 0 ? "holds" : "**does not hold**";
  }
  return {};
}

/// Returns "−3.2%".
std::string change_between(const Figure& figure, const std::optional<double>& from) {
  if (!from || !figure.value || figure.kind == Kind::kProof || *from == 0) return "";
  if (*from == *figure.value) return "=";
  return formatted("%+.1f", 100 * (*figure.value / *from - 1)) + "%";
}

bool is_worse(const Figure& figure, const Figure& baseline, double allowed) {
  if (!baseline.value || figure.kind == Kind::kSeconds) return false;
  if (!figure.value) return true;
  const double margin = allowed * std::abs(*baseline.value);
  return figure.lower_is_better ? *figure.value > *baseline.value + margin
                                : *figure.value < *baseline.value - margin;
}

/// Escapes bars, which would end the cell.
std::string cell(const std::string& text) {
  std::string result;
  for (const char c : printable(text)) result += c == '|' ? std::string("\\|") : std::string(1, c);
  return result;
}

}  // namespace

bool is_report(std::string_view text) {
  constexpr size_t kBeginning = 64;
  const std::string_view beginning = text.substr(0, kBeginning);
  return beginning.find("\"parsimony_report\"") != beginning.npos ||
         beginning.find("\"parsimony_sweep\"") != beginning.npos;
}

ReportFigures read_figures(std::string_view json, std::string_view place) {
  const JsonDocument document(json, place, throw_as<ModelError>);
  const JsonReader root = document.root();
  if (root.is_object() && root.has("parsimony_report")) return of_prune(root);
  if (root.is_object() && root.has("parsimony_sweep")) return of_sweep(root);
  throw ModelError(place, ": expected the JSON report of prune (--report), or of a sweep");
}

std::vector<std::string> what_is_worse(const ReportFigures& report, const ReportFigures& baseline,
                                       double allowed) {
  std::vector<std::string> worse;
  for (const Figure& was : baseline.figures) {
    const Figure* now = find(&report, was.name);
    if (now == nullptr ? was.kind == Kind::kSeconds : !is_worse(*now, was, allowed)) continue;
    worse.push_back(was.name + ": " + (now == nullptr ? "missing" : text_of(*now, now->value)) +
                    ", was " + text_of(was, was.value));
  }
  return worse;
}

std::string to_markdown(const ReportFigures& report, const ReportFigures* baseline) {
  std::string text = "### " + cell(report.title) + "\n\n| | dense | pruned | of dense |";
  text += baseline != nullptr ? " baseline | change |\n|---|--:|--:|--:|--:|--:|\n"
                              : "\n|---|--:|--:|--:|\n";
  for (const Figure& figure : report.figures) {
    const std::string share = figure.dense && figure.value && *figure.dense != 0
                                  ? formatted("%.1f", 100 * *figure.value / *figure.dense) + "%"
                                  : "";
    text += "| " + cell(figure.name) + " | " + text_of(figure, figure.dense) + " | " +
            text_of(figure, figure.value) + " | " + share + " |";
    if (baseline != nullptr) {
      const Figure* was = find(baseline, figure.name);
      text += was == nullptr ? " – | new |"
                             : " " + text_of(*was, was->value) + " | " +
                                   change_between(figure, was->value) + " |";
    }
    text += "\n";
  }
  return text;
}

}  // namespace parsimony
