#!/bin/sh
# Installs the packages, builds, and runs every test. The last thing printed is ctest's summary.
#
#   PARSIMONY_TEST_DATA   folder with real models and data (default: ../shared where that exists)
set -eu
cd "$(dirname "$0")/.."

tools/setup.sh
tools/report/install.sh
tests/report/browser/install.sh

if [ -z "${PARSIMONY_TEST_DATA:-}" ] && [ -d ../shared/models ]; then
  PARSIMONY_TEST_DATA=$(cd ../shared && pwd)
fi
export PARSIMONY_TEST_DATA="${PARSIMONY_TEST_DATA:-}"

build=build/release
log="$build/ctest.log"
# tools/bench.sh builds the benchmarks.
cmake --preset release -DPARSIMONY_BENCH=OFF -DPARSIMONY_TEST_DATA="$PARSIMONY_TEST_DATA" >/dev/null
cmake --build --preset release -- --quiet

status=0
ctest --preset release --no-label-summary --output-log "$log" || status=$?

if [ -z "$PARSIMONY_TEST_DATA" ]; then
  echo "No real models: ../shared is absent and PARSIMONY_TEST_DATA is not set."
  echo "The tests over them were skipped; everything else ran."
fi

echo "The ten slowest tests:"
sed -n 's|^ *[0-9]*/[0-9]* Test *#[0-9]*: \([^ ]*\).* \([0-9.]*\) sec.*|\2 s  \1|p' "$log" | sort -rn | head -n 10
echo

# Again, so that it stands at the end whatever came between.
sed -n '/tests passed,/,$p' "$log"
exit "$status"
