#include "parsimony/report/parts_impl.h"
#include "parsimony/report/sweep/summary.h"

namespace parsimony {

void describe(JsonWriter& way, const Spread& spread) {
  way("mean", spread.mean)("low", spread.low)("high", spread.high);
}

void describe(JsonWriter& way, const Headline& line) {
  way("what", line.what)("before", line.before)("after", line.after);
  way("ratio", line.ratio)("note", line.note);
}

namespace {

std::vector<Json> settings_json(const SweepReport& report) {
  std::vector<Json> settings;
  for (const SweepSetting& setting : report.settings) {
    std::vector<uint64_t> seeds;
    for (const size_t r : setting.rows) seeds.push_back(report.rows[r].point.seed);
    JsonWriter way;
    way("series", setting.series)("run", setting.run)("sparsity", setting.sparsity);
    way("seeds", seeds)("params", setting.params)("macs", setting.macs);
    way("macs_ratio", setting.macs_ratio)("accuracy", setting.accuracy)("change", setting.change);
    way.maybe("perplexity", setting.perplexity);
    way.some("metrics", setting.metrics);
    way("train_seconds", setting.seconds)("train_speedup", setting.train_speedup);
    way("phases", setting.phases)("front", setting.front);
    settings.push_back(way.taken());
  }
  return settings;
}

Json selected_json(const SweepReport& report) {
  const SweepRow& row = report.rows[report.selected];
  JsonWriter way;
  way("key", row.point.key)("series", row.series)("sparsity", row.point.sparsity);
  way("name", report.selected_name)("because", report.selected_because);
  return way.taken();
}

Json compared_json(const SweepReport& report, const SweepRow& row) {
  JsonWriter way;
  way("with", row.dense ? "dense" : row.point.sparsity > 0 ? "before" : "itself");
  way("key", row.dense ? Json(report.rows[*row.dense].point.key) : Json());
  way("correct", row.reference.correct)("total", row.reference.total);
  way("change", row.change)("train_speedup", row.train_speedup);
  return way.taken();
}

}  // namespace

std::string to_json(const SweepReport& report) {
  std::vector<Json> points;
  for (const SweepRow& row : report.rows) {
    Json& point = points.emplace_back(Json::parse(to_json_line(row.point)));
    point["series"] = row.series;
    point["compared"] = compared_json(report, row);
  }
  JsonWriter way;
  way("parsimony_sweep", 1)("title", report.title)("notes", report.notes);
  way("selected", selected_json(report))("headline", report.headline);
  way.some("metrics", report.metrics);
  way("settings", settings_json(report))("points", points);
  return dumped(way.taken());
}

std::string chart_json(const SweepReport& report) {
  std::vector<Json> points;
  for (const SweepRow& row : report.rows) {
    JsonWriter way;
    way("series", row.series)("sparsity", row.point.sparsity)("seed", row.point.seed);
    way("seconds", row.point.train.total())("accuracy", row.point.after.share());
    points.push_back(way.taken());
  }
  JsonWriter way;
  way("selected", selected_json(report))("settings", settings_json(report))("points", points);
  way("layers", report.rows[report.selected].point.layers);
  return way.taken().dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace parsimony
