#!/bin/sh
# Builds the fuzzers of fuzz/ with clang and runs each for a while. A crash ends the run with the
# input that caused it in build/fuzz/.
#
#   tools/fuzz.sh [SECONDS] [NAME...]     default: 60 seconds each, all of them
set -eu
cd "$(dirname "$0")/.."
seconds="${1:-60}"
[ $# -eq 0 ] || shift

tools/setup.sh
cmake --preset fuzz >/dev/null
cmake --build --preset fuzz -- --quiet

[ $# -gt 0 ] || set -- $(cd fuzz && ls -- *.cc | sed 's/\.cc$//')
for name in "$@"; do
  work="build/fuzz/corpus/$name"
  mkdir -p "$work"
  seeds="fuzz/seeds/$name"
  [ -d "$seeds" ] || seeds=
  echo "== $name, $seconds s"
  "build/fuzz/fuzz/fuzz_$name" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 \
    -print_final_stats=1 -artifact_prefix="build/fuzz/$name-" "$work" $seeds
done
