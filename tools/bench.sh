#!/bin/sh
# Builds the benchmarks and runs them. Each prints its measurements and a table of what was found
# against what is allowed; the exit code is 1 if something missed.
#
#   tools/bench.sh [NAME...]     default: resnet50 physical memory script_memory growth startup
#                                live_resnet50 training; "decoder" needs 7 GB of disk
#   tools/bench.sh check [--filter REGEX]
#                                every stage and inner loop, as a multiple of a yardstick's time in
#                                the same run, against bench/baseline.json; 1 if one is slower
#   tools/bench.sh check --update [--runs N]
#                                measures N times (7) and writes bench/baseline.json
set -eu
cd "$(dirname "$0")/.."

case "${1:-}" in
  -h | --help) sed -n '2,12s/^# \{0,1\}//p' "$0"; exit 0 ;;
esac

tools/setup.sh
cmake --preset release -DPARSIMONY_TESTS=OFF -B build/bench >/dev/null
if [ "${1:-}" = check ]; then
  shift
  cmake --build build/bench --target bench_check -- --quiet
  exec build/bench/bench/bench_check "$@"
fi
cmake --build build/bench -- --quiet

[ $# -gt 0 ] || set -- resnet50 physical memory script_memory growth startup live_resnet50 training
status=0
for name in "$@"; do
  echo "== $name"
  "build/bench/bench/bench_$name" --benchmark_counters_tabular=false || status=1
done
exit "$status"
