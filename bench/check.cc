// Is anything slower than it was? Every stage on generated networks and every inner loop takes
// rounds with a yardstick in one process; what is compared with the baseline is the ratio of their
// times.
//
//   bench_check [--baseline FILE] [--filter REGEX | --update [--runs N]]
//
// --filter compares only what it names; --update measures N times (7) and writes FILE. Exit codes:
// 0 as quick as before, 1 slower or a measure is missing, 2 usage, 4 FILE cannot be read or
// written.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <regex>
#include <string>
#include <vector>

#include "bench/support/baseline.h"
#include "bench/support/loops.h"
#include "bench/support/models.h"
#include "bench/support/pipeline.h"
#include "bench/support/process.h"
#include "bench/support/stages.h"
#include "bench/support/yardstick.h"
#include "parsimony/base/files.h"
#include "parsimony/engines/machine/processor.h"

namespace parsimony::bench {
namespace {

constexpr int kTries = 3;  // of what seems slower, before it is said to be

Yardstick& yardstick() {
  static Yardstick only;
  return only;
}

/// The least of some times, interleaved with the least of a yardstick's.
class Rounds {
 public:
  void take(Bound bound) {
    double& least = yardsticks_.try_emplace(bound, kNever).first->second;
    least = std::min(least, yardstick().measure(bound));
  }
  void add(const std::string& measure, Bound bound, double cpu) {
    Entry& entry = entries_.try_emplace(measure, Entry{bound, kNever}).first->second;
    entry.least = std::min(entry.least, cpu);
  }
  void report(benchmark::State& state) const {
    for (const auto& [measure, entry] : entries_) {
      state.counters[measure] = entry.least / yardsticks_.at(entry.bound);
    }
  }

 private:
  static constexpr double kNever = 1e9;
  struct Entry {
    Bound bound;
    double least;
  };
  std::map<Bound, double> yardsticks_;
  std::map<std::string, Entry> entries_;
};

/// What a stage of a network of 100 MB is bound by; of a small one, all are by pointers.
Bound bound_of_large(std::string_view stage) {
  if (stage == "weights" || stage == "score") return Bound::kRead;
  if (stage == "read" || stage == "edit" || stage == "write") return Bound::kCopy;
  return Bound::kPointers;
}

void stages(benchmark::State& state, const std::function<onnx::ModelProto()>& make, bool large) {
  const Folder folder;
  const std::string path = folder / "in.onnx";
  in_child([&] { save(make(), path); });
  Rounds rounds;
  for (auto _ : state) {
    rounds.take(Bound::kPointers);
    if (large) rounds.take(Bound::kRead);
    if (large) rounds.take(Bound::kCopy);
    for (const StageCost& cost : run_stages(path, folder / "out.onnx")) {
      rounds.add(std::string(cost.stage), large ? bound_of_large(cost.stage) : Bound::kPointers,
                 cost.cpu);
    }
  }
  rounds.report(state);
}

void loop(benchmark::State& state, const Loop& loop) {
  Rounds rounds;
  for (auto _ : state) {
    rounds.take(loop.bound);
    const Clock clock;
    loop.run();
    rounds.add("", loop.bound, clock.cpu());
  }
  rounds.report(state);
}

void add_all() {
  constexpr std::pair<int, int> kSizes[] = {{200, 60}, {2000, 16}, {20000, 3}};
  for (const Family family :
       {Family::kChain, Family::kResidual, Family::kDense, Family::kAttention}) {
    for (const auto& [nodes, rounds] : kSizes) {
      const std::string name = std::string(name_of(family)) + "/" + std::to_string(nodes);
      const auto make = [family = family, nodes = nodes] { return network(family, nodes); };
      benchmark::RegisterBenchmark(name.c_str(), [make](benchmark::State& state) {
        stages(state, make, false);
      })->Iterations(rounds);
    }
  }
  benchmark::RegisterBenchmark("resnet50", [](benchmark::State& state) {
    stages(state, resnet50, true);
  })->Iterations(12);
  for (const Loop& each : inner_loops()) {
    benchmark::RegisterBenchmark(("loop/" + each.name).c_str(), [each](benchmark::State& state) {
      loop(state, each);
    })->Iterations(12);
  }
}

/// Gathers the ratios; what Google Benchmark would print is of no use here.
class Gatherer : public benchmark::BenchmarkReporter {
 public:
  bool ReportContext(const Context& /*context*/) override { return true; }
  void ReportRuns(const std::vector<Run>& runs) override {
    for (const Run& run : runs) {
      const std::string& name = run.run_name.function_name;
      if (run.error_occurred) throw std::runtime_error(name + ": " + run.error_message);
      for (const auto& [stage, ratio] : run.counters) {
        ratios[stage.empty() ? name : name + "/" + stage] = ratio;
      }
      std::fprintf(stderr, "\r%-60s", name.c_str());
    }
  }

  Ratios ratios;
};

Ratios measure(const std::string& filter) {
  Gatherer gatherer;
  benchmark::RunSpecifiedBenchmarks(&gatherer, filter);
  std::fprintf(stderr, "\r%-60s\r", "");
  return gatherer.ratios;
}

std::string escaped(const std::string& text) {
  return std::regex_replace(text, std::regex(R"([.+*?()\[\]{}|^$\\])"), R"(\$&)");
}

/// The benchmark that a measure comes from: "chain/200" of "chain/200/couple".
std::string benchmark_of(const std::string& measure) {
  if (measure.starts_with("loop/")) return measure;
  return measure.substr(0, measure.rfind('/'));
}

/// Measures what seems slower again; noise will not strike thrice.
void retry(const Baseline& baseline, Ratios& found) {
  std::string again;
  for (const Comparison& c : compare(baseline, found)) {
    if (c.verdict != Verdict::kSlower) continue;
    again += (again.empty() ? "^(" : "|") + escaped(benchmark_of(c.measure));
  }
  if (again.empty()) return;
  for (const auto& [measure, ratio] : measure(again + ")(/|$)")) {
    double& least = found.at(measure);
    least = std::min(least, ratio);
  }
}

std::string_view word_for(Verdict verdict) {
  switch (verdict) {
    case Verdict::kQuicker:
      return "quicker";
    case Verdict::kSlower:
      return "SLOWER";
    case Verdict::kNew:
      return "new";
    case Verdict::kMissing:
      return "MISSING";
    case Verdict::kSame:
      break;
  }
  return "";
}

void print(const std::vector<Comparison>& comparisons) {
  std::printf("%-32s %10s %10s %8s %8s\n", "measure, times its yardstick", "baseline", "found",
              "change", "band");
  for (const Comparison& c : comparisons) {
    std::printf("%-32s", c.measure.c_str());
    c.expected ? std::printf(" %10.4f", c.expected->ratio) : std::printf(" %10s", "-");
    c.found ? std::printf(" %10.4f", *c.found) : std::printf(" %10s", "-");
    if (c.expected && c.found) {
      std::printf(" %+7.1f%% %7.1f%%", 100 * (*c.found / c.expected->ratio - 1),
                  100 * c.expected->band);
    }
    std::printf(" %s\n", std::string(word_for(c.verdict)).c_str());
  }
}

struct Options {
  std::string baseline = "bench/baseline.json";
  std::string filter = ".";
  bool update = false;
  int runs = 7;
};

int update(const Options& options) {
  std::vector<Ratios> runs;
  for (int i = 0; i < options.runs; ++i) {
    std::fprintf(stderr, "run %d of %d\n", i + 1, options.runs);
    runs.push_back(measure("."));
  }
  const Baseline baseline = summarise(machine::this_processor().model, runs);
  write_file(options.baseline, to_json(baseline));
  print(compare(baseline, runs.back()));
  return 0;
}

int check(const Options& options) {
  Baseline baseline = parse_baseline(read_file(options.baseline), options.baseline);
  const std::regex expected(options.filter);
  std::erase_if(baseline.measures, [&](const auto& entry) {
    return !std::regex_search(benchmark_of(entry.first), expected);
  });
  // Google Benchmark's own names go on behind ours: "chain/200/iterations:60".
  Ratios found = measure(std::regex_replace(options.filter, std::regex(R"(\$$)"), "(/|$$)"));
  for (int i = 1; i < kTries; ++i) retry(baseline, found);
  const std::vector<Comparison> comparisons = compare(baseline, found);
  print(comparisons);
  const std::string processor = machine::this_processor().model;
  if (processor != baseline.processor) {
    std::printf(
        "The baseline is of another processor (%s, here %s): bands are wider than they say.\n",
        baseline.processor.c_str(), processor.c_str());
  }
  if (passes(comparisons)) return 0;
  std::printf("Slower than %s says. If that is meant: tools/bench.sh check --update\n",
              options.baseline.c_str());
  return 1;
}

Options parse(int argc, char** argv) {
  Options options;
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  for (size_t i = 0; i < arguments.size(); ++i) {
    const auto value = [&] {
      if (i + 1 == arguments.size()) throw std::invalid_argument(arguments[i] + " needs a value");
      return arguments[++i];
    };
    if (arguments[i] == "--baseline") {
      options.baseline = value();
    } else if (arguments[i] == "--filter") {
      options.filter = value();
    } else if (arguments[i] == "--runs") {
      options.runs = std::stoi(value());
    } else if (arguments[i] == "--update") {
      options.update = true;
    } else {
      throw std::invalid_argument("unknown argument " + arguments[i]);
    }
  }
  return options;
}

int check_or_update(int argc, char** argv) {
  Options options;
  try {
    options = parse(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "bench_check: %s\n", error.what());
    return 2;
  }
  try {
    add_all();
    return options.update ? update(options) : check(options);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "bench_check: %s\n", error.what());
    return 4;
  }
}

}  // namespace
}  // namespace parsimony::bench

int main(int argc, char** argv) { return parsimony::bench::check_or_update(argc, argv); }
