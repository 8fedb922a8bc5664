#!/bin/sh
# Builds the fuzzers of tests/fuzz/ with clang and runs each for a while. A finding (a crash, an
# undefined operation, more than 5 s, or more than 4 times the input and 64 MB allocated) ends the
# run with exit code 1 and the input that caused it in build/fuzz/; once mended it is named by what
# it shows and moves to tests/fuzz/regressions/. Inputs that reach new code gather in
# build/fuzz/corpus/, where the next run begins.
#
#   tools/fuzz.sh [SECONDS] [NAME...]     default: 60 seconds each, all of them
set -eu
cd "$(dirname "$0")/.."
seconds="${1:-60}"
[ $# -eq 0 ] || shift

tools/setup.sh
cmake --preset fuzz >/dev/null
cmake --build --preset fuzz -- --quiet

export UBSAN_OPTIONS=print_stacktrace=1
[ $# -gt 0 ] || set -- $(cd tests/fuzz && ls -- *.cc | sed 's/\.cc$//')
for name in "$@"; do
  found="build/fuzz/corpus/$name"
  mkdir -p "$found"
  folders="$found"
  [ "$name" != config ] || folders="$folders configs/samples"
  for seeds in tests/fuzz/seeds tests/fuzz/regressions build/fuzz/tests/fuzz/seeds; do
    [ ! -d "$seeds/$name" ] || folders="$folders $seeds/$name"
  done
  log="build/fuzz/$name.log"
  echo "== $name, $seconds s"
  "build/fuzz/tests/fuzz/fuzz_$name" -max_total_time="$seconds" -timeout=5 -rss_limit_mb=2048 \
    -malloc_limit_mb=1024 -max_len=65536 -print_final_stats=1 \
    -artifact_prefix="build/fuzz/$name-" $folders >"$log" 2>&1 || {
    tail -n 60 "$log" >&2
    echo "fuzz.sh: $name found something; the whole log is $log" >&2
    exit 1
  }
  grep '^stat::' "$log"
done
