// What a measurement must reach, and the table that says whether it does.
#pragma once

#include <benchmark/benchmark.h>

#include <cstdint>
#include <string>

namespace parsimony::bench {

/// Compares a measured value with the most that it may be; `unit` is for the table. The table's
/// row is named as the benchmark.
void must_reach(benchmark::State& state, double value, double limit, const std::string& unit);

/// The `main` of every benchmark program: runs Google Benchmark, prints the table, and is not 0 if
/// something missed its limit.
int run_benchmarks(int argc, char** argv);

}  // namespace parsimony::bench
