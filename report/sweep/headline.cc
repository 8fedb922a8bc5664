#include <algorithm>
#include <cmath>
#include <utility>

#include "parsimony/report/sweep/format.h"
#include "parsimony/report/sweep/headline_impl.h"
#include "parsimony/report/text.h"

namespace parsimony {
namespace {

constexpr double kLossAllowed = 0.01;  // a point of accuracy
constexpr double kMiddle = 0.5;        // sparsity shown where none keeps that

/// The seed whose accuracy changed by the middle amount.
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

/// The pruned setting of the lowest cost; null where none has one.
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
  return lines;
}

}  // namespace

void choose_headline(SweepReport& report) {
  select(report);
  report.headline = headline(report);
}

}  // namespace parsimony
