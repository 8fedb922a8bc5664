#include <algorithm>

#include "parsimony/report/html/tables_impl.h"
#include "parsimony/report/json_impl.h"
#include "parsimony/report/text.h"

namespace parsimony {

std::string escaped(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (const char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      case '\'':
        out += "&#39;";
        break;
      default:
        out += c;
    }
  }
  return printable(out);
}

std::string script_safe(std::string_view json) {
  std::string out;
  out.reserve(json.size());
  for (const char c : json) {
    // JSON has these only within strings, where an escape is equivalent.
    if (c == '<' || c == '>' || c == '&') {
      out += c == '<' ? "\\u003c" : c == '>' ? "\\u003e" : "\\u0026";
    } else {
      out += c;
    }
  }
  return out;
}

std::string html_table(std::string_view caption, const Cells& names, size_t left,
                       const std::vector<Cells>& rows) {
  const auto begin = [&](const char* tag, size_t column) {
    return std::string("<") + tag + (column < left ? ">" : " class=\"number\">");
  };
  std::string text = "<div class=\"scroller\" role=\"region\" tabindex=\"0\" aria-label=\"" +
                     escaped(caption) + "\"><table><caption>" + escaped(caption) +
                     "</caption>\n<thead><tr>";
  for (size_t i = 0; i < names.size(); ++i) {
    text += begin("th scope=\"col\"", i) + escaped(names[i]) + "</th>";
  }
  text += "</tr></thead>\n<tbody>\n";
  for (const Cells& row : rows) {
    text += "<tr>";
    for (size_t i = 0; i < row.size(); ++i) {
      const char* const tag = i == 0 ? "th" : "td";
      text += begin(i == 0 ? "th scope=\"row\"" : tag, i) + escaped(row[i]) + "</" + tag + ">";
    }
    text += "</tr>\n";
  }
  return text + "</tbody></table></div>\n";
}

namespace {

/// Returns a row per setting, beginning with its name.
template <typename Fill>
std::vector<Cells> setting_rows(const SweepReport& report, Fill fill) {
  std::vector<Cells> rows;
  for (const SweepSetting& setting : report.settings) {
    Cells cells{setting.series, sparsity_text(setting.sparsity)};
    if (fill(setting, cells)) rows.push_back(std::move(cells));
  }
  return rows;
}

std::string proof_cell(const LedgerPoint& point) {
  if (!point.proof) return "–";
  if (!point.proof->ran) return "not run";
  return (point.proof->holds() ? "holds, " : "DIFFERS, ") +
         scientific_text(point.proof->difference);
}

}  // namespace

std::string front_table(const SweepReport& report) {
  return html_table("Accuracy and training time",
                    {"series", "sparsity", "training time", "accuracy", "on the front"}, 1,
                    setting_rows(report, [](const SweepSetting& setting, Cells& cells) {
                      cells.push_back(seconds_text(setting.seconds.mean));
                      cells.push_back(accuracy_text(setting.accuracy.mean));
                      cells.push_back(setting.front ? "yes" : "no");
                      return true;
                    }));
}

std::string accuracy_table(const SweepReport& report) {
  return html_table(
      "Accuracy and sparsity",
      {"series", "sparsity", "seeds", "accuracy", "lowest", "highest", "change"}, 1,
      setting_rows(report, [](const SweepSetting& setting, Cells& cells) {
        cells.push_back(std::to_string(setting.rows.size()));
        cells.push_back(accuracy_text(setting.accuracy.mean));
        cells.push_back(accuracy_text(setting.accuracy.low));
        cells.push_back(accuracy_text(setting.accuracy.high));
        cells.push_back(setting.sparsity == 0 ? "–" : change_text(setting.change.mean));
        return true;
      }));
}

bool has_speedup(const SweepReport& report) {
  return std::any_of(report.settings.begin(), report.settings.end(),
                     [](const SweepSetting& setting) { return setting.train_speedup.has_value(); });
}

std::string speedup_table(const SweepReport& report) {
  return html_table("Training speedup",
                    {"series", "sparsity", "speedup", "lowest", "highest", "ratio of MACs"}, 1,
                    setting_rows(report, [](const SweepSetting& setting, Cells& cells) {
                      if (!setting.train_speedup) return false;
                      cells.push_back(times_text(setting.train_speedup->mean));
                      cells.push_back(times_text(setting.train_speedup->low));
                      cells.push_back(times_text(setting.train_speedup->high));
                      cells.push_back(times_text(setting.macs_ratio));
                      return true;
                    }));
}

std::string time_table(const SweepReport& report) {
  LedgerPoint::Phases all;
  for (const SweepSetting& setting : report.settings) all.exchange += setting.phases.exchange;
  const std::vector<TrainingPhase> phases = phases_in(all);
  Cells names = {"series", "sparsity"};
  for (const TrainingPhase& phase : phases) names.push_back(phase.name);
  names.push_back("total");
  return html_table("Training time by phase", names, 1,
                    setting_rows(report, [&](const SweepSetting& setting, Cells& cells) {
                      for (const TrainingPhase& phase : phases) {
                        cells.push_back(seconds_text(setting.phases.*phase.seconds));
                      }
                      cells.push_back(seconds_text(setting.phases.total()));
                      return true;
                    }));
}

std::string layers_table(const LedgerPoint& point) {
  std::vector<Cells> rows;
  for (const LedgerPoint::Layer& layer : point.layers) {
    rows.push_back({layer.name, layer.op, with_thousands(layer.before), with_thousands(layer.after),
                    percent(layer.after, layer.before)});
  }
  return html_table("Channels of each layer", {"layer", "operator", "before", "after", "left"}, 2,
                    rows);
}

std::string unpruned_table(const LedgerPoint& point) {
  std::vector<Cells> rows;
  for (const UnprunedDim& kept : point.unpruned_dims) rows.push_back({kept.axis, kept.reason});
  return html_table("What was not pruned", {"axis", "why"}, 2, rows);
}

std::string settings_table(const SweepReport& report) {
  Cells names = {"series",        "sparsity", "seeds",    "parameters", "MACs",
                 "training time", "speedup",  "accuracy", "change",     "on the front"};
  names.insert(names.end(), report.metrics.begin(), report.metrics.end());
  return html_table(
      "All settings", names, 1, setting_rows(report, [](const SweepSetting& setting, Cells& cells) {
        cells.push_back(std::to_string(setting.rows.size()));
        cells.push_back(with_thousands(static_cast<int64_t>(setting.params.mean)));
        cells.push_back(macs_text(setting.macs.mean));
        cells.push_back(seconds_text(setting.seconds.mean));
        cells.push_back(setting.train_speedup ? times_text(setting.train_speedup->mean) : "–");
        cells.push_back(score_text(setting.accuracy.mean, mean_of(setting.perplexity)));
        cells.push_back(setting.sparsity == 0 ? "–" : change_text(setting.change.mean));
        cells.push_back(setting.front ? "yes" : "no");
        for (const std::string& cell : metric_cells(setting)) cells.push_back(cell);
        return true;
      }));
}

std::string points_table(const SweepReport& report) {
  std::vector<Cells> rows;
  for (const SweepRow& row : report.rows) {
    const LedgerPoint& point = row.point;
    rows.push_back(
        {row.series, sparsity_text(point.sparsity), std::to_string(point.seed),
         with_thousands(point.params.after), macs_text(static_cast<double>(point.macs.after)),
         bytes_text(point.bytes.after),
         point.latency_ms ? milliseconds_text(point.latency_ms->after) : "–",
         seconds_text(point.train.total()),
         row.train_speedup ? times_text(*row.train_speedup) : "–",
         with_thousands(point.after.correct) + " of " + with_thousands(point.after.total),
         score_text(point.after.share(), point.after.perplexity),
         point.sparsity == 0 ? "–" : change_text(row.change), proof_cell(point)});
    for (const std::string& name : report.metrics) {
      rows.back().push_back(metric_text(metric_of(point, name)));
    }
  }
  Cells names = {"series",   "sparsity", "seed",    "parameters", "MACs",   "file", "latency",
                 "training", "speedup",  "correct", "accuracy",   "change", "proof"};
  names.insert(names.end(), report.metrics.begin(), report.metrics.end());
  return html_table("All points of the sweep", names, 1, rows);
}

std::string facts_table(const SweepReport& report) {
  const LedgerPoint& point = report.rows[report.selected].point;
  const auto hashed = [](const std::string& name, const std::string& hash) {
    return hash.empty() ? name : name + " (" + hash.substr(0, 12) + ")";
  };
  std::vector<Cells> rows = {{"model", hashed(point.model.name, point.model.sha256)},
                             {"data", hashed(point.data.name, point.data.fingerprint) + ", " +
                                          with_thousands(point.data.train) + " to train on, " +
                                          with_thousands(point.data.test) + " to test on"},
                             {"processor", point.machine.processor},
                             {"threads", std::to_string(point.machine.threads) + " on " +
                                             counted(point.machine.cores, "core")}};
  if (point.ranks) rows.push_back({"ranks", ranks_text(point)});
  rows.push_back({"Parsimony", point.version});
  rows.push_back({"key", point.key});
  return html_table("What it ran with", {"", ""}, 2, rows);
}

std::string escaped_config(const LedgerPoint& point) {
  std::string out;
  const std::string json = dumped(Json::parse(point.config, nullptr, false));
  const std::string_view text = json;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    out += escaped(text.substr(begin, end - begin)) + "\n";
    begin = end + 1;
  }
  return out;
}

}  // namespace parsimony
