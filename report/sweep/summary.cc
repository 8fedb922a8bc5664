#include "parsimony/report/sweep/summary.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <string_view>
#include <tuple>
#include <utility>

#include "parsimony/base/errors.h"
#include "parsimony/base/ranges.h"
#include "parsimony/report/json_impl.h"
#include "parsimony/report/text.h"

namespace parsimony {
namespace {

/// Keys of a config that determine the set of points, not the training of one.
constexpr const char* kPointKeys[] = {"criterion",  "criteria", "sparsity",
                                      "sparsities", "seed",     "seeds"};

Json common_config(const LedgerPoint& point) {
  Json config = Json::parse(point.config, nullptr, false);
  for (const char* key : kPointKeys) config.erase(key);
  const auto train = config.find("train");
  if (train != config.end() && train->is_object()) train->erase("seed");
  return config;
}

/// Returns what points must have in common to be comparable.
std::string identity(const LedgerPoint& point) {
  const Json all = {point.model.name, point.data.name, point.data.fingerprint,
                    point.data.train, point.data.test, common_config(point)};
  return all.dump(-1, ' ', false, Json::error_handler_t::replace);
}

/// Returns the shortest name for each run that distinguishes it from the others.
std::map<std::string, std::string> name_runs(const std::vector<LedgerPoint>& points) {
  std::map<std::string, std::string> runs;
  std::map<std::string, int> used;
  for (const LedgerPoint& point : points) {
    const auto [run, is_new] = runs.try_emplace(identity(point));
    if (!is_new) continue;
    run->second = point.model.name + " on " + point.data.name;
    const int count = ++used[run->second];
    if (count > 1) run->second += " #" + std::to_string(count);
  }
  return runs;
}

/// Returns the difference of accuracies, exact if both have the same number of examples.
double difference(const LedgerPoint::Score& after, const LedgerPoint::Score& before) {
  if (after.total != before.total || after.total == 0) return after.share() - before.share();
  return static_cast<double>(after.correct - before.correct) / static_cast<double>(after.total);
}

/// A point and the name of its run.
struct Placed {
  std::string run;
  LedgerPoint point;
};

std::vector<SweepRow> compare(std::vector<Placed> placed, size_t runs) {
  std::map<std::pair<std::string_view, uint64_t>, size_t> dense;
  for (size_t p = 0; p < placed.size(); ++p) {
    if (placed[p].point.sparsity == 0) {
      dense.try_emplace({placed[p].run, placed[p].point.seed}, p);
    }
  }
  std::vector<SweepRow> rows(placed.size());
  for (size_t r = 0; r < rows.size(); ++r) {
    rows[r].point = std::move(placed[r].point);
    rows[r].series = rows[r].point.sparsity == 0 ? "dense" : rows[r].point.criterion;
    if (runs > 1) rows[r].series += " · " + placed[r].run;
  }
  for (size_t r = 0; r < rows.size(); ++r) {
    SweepRow& row = rows[r];
    const LedgerPoint& point = row.point;
    row.reference = point.sparsity > 0 ? point.before : point.after;
    const auto found = dense.find({placed[r].run, point.seed});
    if (point.sparsity > 0 && found != dense.end()) {
      row.dense = found->second;
      const LedgerPoint& other = rows[found->second].point;
      row.reference = other.after;
      if (point.train.total() > 0) row.train_speedup = other.train.total() / point.train.total();
    }
    row.change = difference(point.after, row.reference);
  }
  return rows;
}

template <typename Get>
Spread spread(const std::vector<SweepRow>& rows, const std::vector<size_t>& chosen, Get get) {
  Spread result{0, get(rows[chosen[0]]), get(rows[chosen[0]])};
  for (const size_t r : chosen) {
    const double value = get(rows[r]);
    result.mean += value / static_cast<double>(chosen.size());
    result.low = std::min(result.low, value);
    result.high = std::max(result.high, value);
  }
  // Rounding must not carry the mean of equal values out of their range.
  result.mean = std::clamp(result.mean, result.low, result.high);
  return result;
}

LedgerPoint::Phases mean_phases(const std::vector<SweepRow>& rows,
                                const std::vector<size_t>& chosen) {
  LedgerPoint::Phases means;
  for (const TrainingPhase& phase : kTrainingPhases) {
    const auto seconds = [&](const SweepRow& row) { return row.point.train.*phase.seconds; };
    means.*phase.seconds = spread(rows, chosen, seconds).mean;
  }
  return means;
}

std::vector<std::string> metrics_of(const std::vector<SweepRow>& rows) {
  std::vector<std::string> names;
  for (const SweepRow& row : rows) {
    for (const LedgerPoint::Metric& metric : row.point.metrics) {
      if (!contains(names, metric.name)) names.push_back(metric.name);
    }
  }
  return names;
}

std::optional<Spread> metric_spread(const SweepSetting& setting, const std::vector<SweepRow>& rows,
                                    const std::string& name) {
  const auto value = [&](const SweepRow& row) { return metric_of(row.point, name); };
  std::vector<size_t> measured;
  for (const size_t r : setting.rows) {
    if (!std::isnan(value(rows[r]))) measured.push_back(r);
  }
  if (measured.empty()) return {};
  return spread(rows, measured, value);
}

void fill(SweepSetting& setting, const std::vector<SweepRow>& rows) {
  const auto over = [&](auto get) { return spread(rows, setting.rows, get); };
  setting.params =
      over([](const SweepRow& row) { return static_cast<double>(row.point.params.after); });
  setting.macs =
      over([](const SweepRow& row) { return static_cast<double>(row.point.macs.after); });
  setting.macs_ratio = over([](const SweepRow& row) {
                         const auto& macs = row.point.macs;
                         return static_cast<double>(macs.before) /
                                static_cast<double>(std::max<int64_t>(macs.after, 1));
                       }).mean;
  setting.accuracy = over([](const SweepRow& row) { return row.point.after.share(); });
  if (std::ranges::all_of(setting.rows,
                          [&](size_t r) { return rows[r].point.after.perplexity.has_value(); })) {
    setting.perplexity = over([](const SweepRow& row) { return *row.point.after.perplexity; });
  }
  setting.change = over([](const SweepRow& row) { return row.change; });
  setting.seconds = over([](const SweepRow& row) { return row.point.train.total(); });
  setting.phases = mean_phases(rows, setting.rows);
  std::vector<size_t> compared;
  for (const size_t r : setting.rows) {
    if (rows[r].train_speedup) compared.push_back(r);
  }
  if (!compared.empty()) {
    setting.train_speedup =
        spread(rows, compared, [](const SweepRow& row) { return *row.train_speedup; });
  }
}

/// Marks the Pareto front: no other setting is at least as good in both, and better in one.
void mark_front(std::vector<SweepSetting>& settings) {
  for (SweepSetting& one : settings) {
    one.front = std::none_of(settings.begin(), settings.end(), [&](const SweepSetting& other) {
      return other.run == one.run && other.seconds.mean <= one.seconds.mean &&
             other.accuracy.mean >= one.accuracy.mean &&
             (other.seconds.mean < one.seconds.mean || other.accuracy.mean > one.accuracy.mean);
    });
  }
}

std::vector<SweepSetting> settings_of(const std::vector<SweepRow>& rows,
                                      const std::vector<std::string>& runs) {
  std::vector<SweepSetting> settings;
  for (size_t r = 0; r < rows.size(); ++r) {
    const SweepRow& row = rows[r];
    const bool same = !settings.empty() && settings.back().series == row.series &&
                      settings.back().sparsity == row.point.sparsity;
    if (!same) {
      SweepSetting setting;
      setting.series = row.series;
      setting.run = runs[r];
      setting.sparsity = row.point.sparsity;
      settings.push_back(std::move(setting));
    }
    settings.back().rows.push_back(r);
  }
  for (SweepSetting& setting : settings) fill(setting, rows);
  mark_front(settings);
  return settings;
}

void note_what_differs(SweepReport& report, size_t runs) {
  std::set<std::string> machines;
  size_t without_dense = 0;
  size_t pruned = 0;
  size_t disproved = 0;
  for (const SweepRow& row : report.rows) {
    const LedgerPoint::Machine& machine = row.point.machine;
    machines.insert(machine.processor + '\n' + std::to_string(machine.threads));
    if (row.point.proof && row.point.proof->ran && !row.point.proof->holds()) ++disproved;
    if (row.point.sparsity == 0) continue;
    ++pruned;
    if (!row.dense) ++without_dense;
  }
  const auto add = [&](std::string note) { report.notes.push_back(std::move(note)); };
  if (runs > 1) {
    add("The points come from " + std::to_string(runs) +
        " runs that differ in model, data or configuration; compare only points of the same run.");
  }
  if (machines.size() > 1) {
    add("The points were measured on " + std::to_string(machines.size()) +
        " machines or with different numbers of threads; compare only times of the same one.");
  }
  if (without_dense > 0) {
    add("There is no dense network of the same seed for " + std::to_string(without_dense) + " of " +
        counted(static_cast<int64_t>(pruned), "pruned point") +
        ": their accuracy is compared with that before pruning, their training time is not "
        "compared.");
  }
  if (disproved > 0) {
    add("The proof does not hold for " + counted(static_cast<int64_t>(disproved), "point") +
        ": see the table of all points.");
  }
}

// The headline: selects the network at the top of the report.

constexpr double kLossAllowed = 0.01;  // a point of accuracy
constexpr double kMiddle = 0.5;        // sparsity shown where none keeps that

/// Returns the row of the seed with the median change of accuracy.
size_t middle_row(const SweepReport& report, const SweepSetting& setting) {
  std::vector<size_t> rows = setting.rows;
  const auto change = [&](size_t row) {
    const double own = report.rows[row].change;
    return std::isnan(own) ? -1 : own;
  };
  std::stable_sort(rows.begin(), rows.end(),
                   [&](size_t a, size_t b) { return change(a) < change(b); });
  return rows[(rows.size() - 1) / 2];
}

/// Returns the pruned setting of the lowest cost; null if none has a cost.
template <typename Cost>
const SweepSetting* best_of(const std::vector<SweepSetting>& settings, Cost cost) {
  const SweepSetting* best = nullptr;
  for (const SweepSetting& setting : settings) {
    if (setting.sparsity == 0) continue;
    const auto own = cost(setting);
    if (own && (best == nullptr || *own < *cost(*best))) best = &setting;
  }
  return best;
}

void select(SweepReport& report) {
  using Cost = std::optional<std::pair<double, double>>;
  const auto within = [](const SweepSetting& setting) -> Cost {
    if (!(setting.change.mean >= -kLossAllowed)) return std::nullopt;
    return std::pair(setting.params.mean, -setting.change.mean);
  };
  const auto nearest = [](const SweepSetting& setting) -> Cost {
    return std::pair(std::fabs(setting.sparsity - kMiddle), -setting.change.mean);
  };
  const SweepSetting* best = best_of(report.settings, within);
  std::string why = "the smallest network that loses at most one point of accuracy";
  if (best == nullptr) {
    best = best_of(report.settings, nearest);
    why = "the network nearest to 50% sparsity: none loses less than one point of accuracy";
  }
  if (best == nullptr) {
    report.selected_name = report.rows[report.selected].series;
    report.selected_because = "nothing was pruned";
    return;
  }
  report.selected = middle_row(report, *best);
  report.selected_because = why;
  report.selected_name = best->series + " at " + sparsity_text(best->sparsity) + ", seed " +
                         std::to_string(report.rows[report.selected].point.seed);
  if (best->rows.size() > 1) {
    report.selected_name += " (the middle one of " + std::to_string(best->rows.size()) + ")";
  }
}

Headline counts(const char* what, const LedgerPoint::Pair& pair, std::string (*text)(int64_t),
                const char* note = "") {
  return {what, text(pair.before), text(pair.after),
          ratio_text(static_cast<double>(pair.before), static_cast<double>(pair.after)), note};
}

std::vector<Headline> headline(const SweepReport& report) {
  const SweepRow& row = report.rows[report.selected];
  const LedgerPoint& point = row.point;
  std::vector<Headline> lines;
  lines.push_back(counts("parameters", point.params, with_thousands));
  lines.push_back(counts(
      "MACs", point.macs, [](int64_t macs) { return macs_text(static_cast<double>(macs)); },
      "multiply-adds for one example"));
  lines.push_back(counts("file size", point.bytes, bytes_text));
  if (point.latency_ms) {
    lines.push_back({"latency", milliseconds_text(point.latency_ms->before),
                     milliseconds_text(point.latency_ms->after),
                     ratio_text(point.latency_ms->before, point.latency_ms->after),
                     "a batch of " + std::to_string(point.latency_ms->batch)});
  }
  const double own = point.train.total();
  if (row.dense) {
    const double dense = report.rows[*row.dense].point.train.total();
    lines.push_back({"training time", seconds_text(dense), seconds_text(own),
                     ratio_text(dense, own), counted(std::ssize(point.epochs), "epoch")});
  } else {
    lines.push_back({"training time", "–", seconds_text(own), "–",
                     point.sparsity == 0 ? "" : "no dense network of this seed was trained"});
  }
  if (point.sparsity == 0) {
    lines.push_back({"accuracy", "–", accuracy_text(point.after.share()), "–", ""});
  } else {
    lines.push_back({"accuracy", accuracy_text(row.reference.share()),
                     accuracy_text(point.after.share()), change_text(row.change),
                     row.dense ? "dense, trained alike" : "before is after warm-up"});
  }
  if (point.after.perplexity) {
    constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
    const double before = point.sparsity == 0 ? kNone : row.reference.perplexity.value_or(kNone);
    lines.push_back(
        {"perplexity", perplexity_text(before), perplexity_text(*point.after.perplexity),
         ratio_text(before, *point.after.perplexity), "exponential of the mean token loss"});
  }
  for (const LedgerPoint::Metric& metric : point.metrics) {
    constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
    const double before = row.dense ? metric_of(report.rows[*row.dense].point, metric.name) : kNone;
    lines.push_back({metric.name, metric_text(before), metric_text(metric.value), "–",
                     metric.lower_is_better ? "lower is better" : ""});
  }
  return lines;
}

/// Fills in the selected row, the reason, and the lines of the headline.
void choose_headline(SweepReport& report) {
  select(report);
  report.headline = headline(report);
}

}  // namespace

double metric_of(const LedgerPoint& point, const std::string& name) {
  const auto found = std::ranges::find(point.metrics, name, &LedgerPoint::Metric::name);
  return found == point.metrics.end() ? std::numeric_limits<double>::quiet_NaN() : found->value;
}

std::vector<std::string> metric_cells(const SweepSetting& setting) {
  constexpr double kNothing = std::numeric_limits<double>::quiet_NaN();
  std::vector<std::string> cells;
  for (const auto& metric : setting.metrics) {
    cells.push_back(metric_text(mean_of(metric).value_or(kNothing)));
  }
  return cells;
}

SweepReport summarise(LedgerContent content, std::string title) {
  if (content.points.empty()) {
    throw ModelError("the ledger has no finished points yet; there is nothing to report");
  }
  // Sort by key first: names of runs must not depend on the order of completion.
  std::sort(content.points.begin(), content.points.end(),
            [](const LedgerPoint& a, const LedgerPoint& b) { return a.key < b.key; });
  const std::map<std::string, std::string> runs = name_runs(content.points);
  std::vector<Placed> placed;
  for (LedgerPoint& point : content.points) {
    placed.push_back({runs.at(identity(point)), std::move(point)});
  }
  std::stable_sort(placed.begin(), placed.end(), [](const Placed& a, const Placed& b) {
    const auto order = [](const Placed& p) {
      const std::string_view criterion = p.point.criterion;
      const bool dense = p.point.sparsity == 0;
      return std::tuple(std::string_view(p.run), dense ? std::string_view() : criterion,
                        p.point.sparsity, p.point.seed);
    };
    return order(a) < order(b);
  });

  SweepReport report;
  report.notes = std::move(content.notes);
  report.title = std::move(title);
  if (report.title.empty()) report.title = "Pruning " + placed[0].run;
  std::vector<std::string> run_of_row;
  for (const Placed& p : placed) run_of_row.push_back(p.run);
  report.rows = compare(std::move(placed), runs.size());
  report.settings = settings_of(report.rows, run_of_row);
  report.metrics = metrics_of(report.rows);
  for (SweepSetting& setting : report.settings) {
    for (const std::string& name : report.metrics) {
      setting.metrics.push_back(metric_spread(setting, report.rows, name));
    }
  }
  choose_headline(report);
  note_what_differs(report, runs.size());
  return report;
}

}  // namespace parsimony
