#!/bin/sh
# Builds the benchmarks and runs them. Each prints its measurements and a table of what was found
# against what is allowed; the exit code is 1 if something missed.
#
#   tools/bench.sh [NAME...]     default: resnet50 memory growth startup live_resnet50 training;
#                                "decoder" needs 7 GB of disk
set -eu
cd "$(dirname "$0")/.."

tools/setup.sh
cmake --preset release -DPARSIMONY_TESTS=OFF -B build/bench >/dev/null
cmake --build build/bench -- --quiet

[ $# -gt 0 ] || set -- resnet50 memory growth startup live_resnet50 training
status=0
for name in "$@"; do
  echo "== $name"
  "build/bench/bench/bench_$name" --benchmark_counters_tabular=false || status=1
done
exit "$status"
