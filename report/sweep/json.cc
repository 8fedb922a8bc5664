#include <cmath>

#include "parsimony/report/json_impl.h"
#include "parsimony/report/parts_impl.h"
#include "parsimony/report/sweep/summary.h"

namespace parsimony {
namespace {

/// JSON has no NaN.
Json number(double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); }

Json to_object(const Spread& spread) {
  return {
      {"mean", number(spread.mean)}, {"low", number(spread.low)}, {"high", number(spread.high)}};
}

Json settings_json(const SweepReport& report) {
  Json settings = Json::array();
  for (const SweepSetting& setting : report.settings) {
    Json seeds = Json::array();
    for (const size_t r : setting.rows) seeds.push_back(report.rows[r].point.seed);
    settings.push_back({{"series", setting.series},
                        {"run", setting.run},
                        {"sparsity", setting.sparsity},
                        {"seeds", std::move(seeds)},
                        {"params", to_object(setting.params)},
                        {"macs", to_object(setting.macs)},
                        {"macs_ratio", setting.macs_ratio},
                        {"accuracy", to_object(setting.accuracy)},
                        {"change", to_object(setting.change)},
                        {"train_seconds", to_object(setting.seconds)},
                        {"train_speedup",
                         setting.train_speedup ? to_object(*setting.train_speedup) : Json(nullptr)},
                        {"phases", to_object(setting.phases)},
                        {"front", setting.front}});
  }
  return settings;
}

Json selected_json(const SweepReport& report) {
  const SweepRow& row = report.rows[report.selected];
  return {{"key", row.point.key},
          {"series", row.series},
          {"sparsity", row.point.sparsity},
          {"name", report.selected_name},
          {"because", report.selected_because}};
}

Json compared_json(const SweepReport& report, const SweepRow& row) {
  const char* const with = row.dense ? "dense" : row.point.sparsity > 0 ? "before" : "itself";
  return {{"with", with},
          {"key", row.dense ? Json(report.rows[*row.dense].point.key) : Json(nullptr)},
          {"correct", row.reference.correct},
          {"total", row.reference.total},
          {"change", number(row.change)},
          {"train_speedup", row.train_speedup ? number(*row.train_speedup) : Json(nullptr)}};
}

}  // namespace

std::string to_json(const SweepReport& report) {
  Json headline = Json::array();
  for (const Headline& line : report.headline) {
    headline.push_back({{"what", line.what},
                        {"before", line.before},
                        {"after", line.after},
                        {"ratio", line.ratio},
                        {"note", line.note}});
  }
  Json points = Json::array();
  for (const SweepRow& row : report.rows) {
    Json point = Json::parse(to_json_line(row.point));
    point["series"] = row.series;
    point["compared"] = compared_json(report, row);
    points.push_back(std::move(point));
  }
  return dumped(Json{{"parsimony_sweep", 1},
                     {"title", report.title},
                     {"notes", report.notes},
                     {"selected", selected_json(report)},
                     {"headline", std::move(headline)},
                     {"settings", settings_json(report)},
                     {"points", std::move(points)}});
}

std::string chart_json(const SweepReport& report) {
  Json points = Json::array();
  for (const SweepRow& row : report.rows) {
    points.push_back({{"series", row.series},
                      {"sparsity", row.point.sparsity},
                      {"seed", row.point.seed},
                      {"seconds", row.point.train.total()},
                      {"accuracy", number(row.point.after.share())}});
  }
  Json layers = Json::array();
  for (const LedgerPoint::Layer& layer : report.rows[report.selected].point.layers) {
    layers.push_back(
        {{"name", layer.name}, {"op", layer.op}, {"before", layer.before}, {"after", layer.after}});
  }
  return Json{{"selected", selected_json(report)},
              {"settings", settings_json(report)},
              {"points", std::move(points)},
              {"layers", std::move(layers)}}
      .dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace parsimony
