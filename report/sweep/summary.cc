#include "parsimony/report/sweep/summary.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string_view>
#include <tuple>
#include <utility>

#include "parsimony/report/errors.h"
#include "parsimony/report/json_impl.h"
#include "parsimony/report/sweep/headline_impl.h"
#include "parsimony/report/text.h"

namespace parsimony {
namespace {

/// Keys of a config that say which points there are, not how one is trained.
constexpr const char* kPointKeys[] = {"criterion",  "criteria", "sparsity",
                                      "sparsities", "seed",     "seeds"};

Json common_config(const LedgerPoint& point) {
  Json config = Json::parse(point.config, nullptr, false);
  for (const char* key : kPointKeys) config.erase(key);
  const auto train = config.find("train");
  if (train != config.end() && train->is_object()) train->erase("seed");
  return config;
}

/// What points must have in common to be compared.
std::string identity(const LedgerPoint& point) {
  const Json all = {point.model.name, point.data.name, point.data.fingerprint,
                    point.data.train, point.data.test, common_config(point)};
  return all.dump(-1, ' ', false, Json::error_handler_t::replace);
}

/// A name for each run, as short as tells it from the others.
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

/// Exact where both were counted on as many examples.
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
  const auto mean = [&](double LedgerPoint::Phases::*phase) {
    return spread(rows, chosen, [&](const SweepRow& row) { return row.point.train.*phase; }).mean;
  };
  using Phases = LedgerPoint::Phases;
  return {mean(&Phases::wait), mean(&Phases::forward), mean(&Phases::backward),
          mean(&Phases::optimizer), mean(&Phases::rest)};
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

/// No other is at least as good in both, and better in one.
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
    machines.insert(machine.processor + '\n' + std::to_string(machine.threads) + machine.blas);
    if (row.point.proof && row.point.proof->ran && !row.point.proof->holds()) ++disproved;
    if (row.point.sparsity == 0) continue;
    ++pruned;
    if (!row.dense) ++without_dense;
  }
  const auto add = [&](std::string note) { report.notes.push_back(std::move(note)); };
  if (runs > 1) {
    add("The points come from " + std::to_string(runs) +
        " runs that differ in model, data or configuration; compare within one only.");
  }
  if (machines.size() > 1) {
    add("The points were measured on " + std::to_string(machines.size()) +
        " machines or with different threads; compare times within one only.");
  }
  if (without_dense > 0) {
    add("There is no dense network of the same seed for " + std::to_string(without_dense) + " of " +
        counted(static_cast<int64_t>(pruned), "pruned point") +
        ": accuracy is compared with their own before pruning, training time with nothing.");
  }
  if (disproved > 0) {
    add("The proof does not hold for " + counted(static_cast<int64_t>(disproved), "point") +
        ": see the table of all points.");
  }
}

}  // namespace

SweepReport summarise(LedgerContent content, std::string title) {
  if (content.points.empty()) throw errors::no_points();
  // By key first: the names of runs, too, must not depend on who finished when.
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
  choose_headline(report);
  note_what_differs(report, runs.size());
  return report;
}

}  // namespace parsimony
