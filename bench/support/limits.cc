#include "bench/support/limits.h"

#include <algorithm>
#include <cstdio>
#include <vector>

namespace parsimony::bench {
namespace {

struct Row {
  std::string measure;
  double value;
  double limit;
  std::string unit;
};

/// Google Benchmark's own reporter, which also gathers what has a limit.
class Reporter : public benchmark::ConsoleReporter {
 public:
  Reporter() : ConsoleReporter(OO_Tabular) {}

  void ReportRuns(const std::vector<Run>& reports) override {
    for (const Run& run : reports) {
      failed_ = failed_ || run.error_occurred;
      const auto limit = run.counters.find("limit");
      if (limit == run.counters.end()) continue;
      rows_.push_back(
          {run.run_name.function_name, run.counters.at("value"), limit->second, run.report_label});
    }
    ConsoleReporter::ReportRuns(reports);
  }

  /// True if nothing failed and no limit was missed.
  bool print_table() const {
    std::printf("\n%-48s %10s %10s\n", "measure", "found", "at most");
    bool good = !failed_;
    for (const Row& row : rows_) {
      const bool reached = row.value <= row.limit;
      good = good && reached;
      std::printf("%-48s %10.2f %10.2f %-12s %s\n", row.measure.c_str(), row.value, row.limit,
                  row.unit.c_str(), reached ? "reached" : "MISSED");
    }
    return good;
  }

 private:
  std::vector<Row> rows_;
  bool failed_ = false;
};

}  // namespace

void must_reach(benchmark::State& state, double value, double limit, const std::string& unit) {
  state.counters["value"] = value;
  state.counters["limit"] = limit;
  state.SetLabel(unit);
}

int run_benchmarks(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  Reporter reporter;
  benchmark::RunSpecifiedBenchmarks(&reporter);
  return reporter.print_table() ? 0 : 1;
}

}  // namespace parsimony::bench
