#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <optional>

#include "parsimony/report/event_file.h"
#include "parsimony/report/sweep/summary.h"

namespace parsimony {
namespace {

/// "l1-seed0", as one name of a folder.
std::string run_name(const SweepRow& row) {
  std::string name = row.series + "-seed" + std::to_string(row.point.seed);
  std::ranges::replace_if(
      name, [](unsigned char c) { return c < ' ' || c == '/'; }, '_');
  return name;
}

/// Where it stands on the axis.
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
