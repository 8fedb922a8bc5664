#!/bin/sh
# A gate for continuous integration: prunes a model, proves the result, and fails if a budget, a
# metric or the figures of an earlier report are missed.
#
#   tools/gate.sh [--baseline R.json] [--allow PERCENT] [--out DIR] MODEL [PRUNE OPTIONS...]
#
# DIR (parsimony-gate) gets small.onnx, or what the model's suffix is, plan.json, report.json,
# network.html and summary.md, which is also added to the file that $GITHUB_STEP_SUMMARY names.
# Without a baseline nothing is compared; DIR/report.json of one run is the baseline of the next.
# PARSIMONY names the command (parsimony). The exit code is that of parsimony: 1 if something is
# worse or not proven.
set -eu

baseline=
allow=1
out=parsimony-gate
while [ $# -gt 0 ]; do
  case "$1" in
    -h | --help) sed -n '2,12s/^# \{0,1\}//p' "$0"; exit 0 ;;
    --baseline) baseline=$2; shift 2 ;;
    --allow) allow=$2; shift 2 ;;
    --out) out=$2; shift 2 ;;
    -*) echo "gate.sh: unknown option $1; see --help" >&2; exit 2 ;;
    *) break ;;
  esac
done
[ $# -gt 0 ] || { echo "gate.sh: no model; see --help" >&2; exit 2; }
model=$1
shift
parsimony=${PARSIMONY:-parsimony}

mkdir -p "$out"
"$parsimony" prune "$model" -o "$out/small.${model##*.}" --plan "$out/plan.json" \
  --report "$out/report.json" --html "$out/network.html" "$@"

status=0
if [ -n "$baseline" ]; then
  "$parsimony" report "$out/report.json" --against "$baseline" --allow "$allow" \
    >"$out/summary.md" 2>"$out/worse.txt" || status=$?
  if [ -s "$out/worse.txt" ]; then
    cat "$out/worse.txt" >&2
    { echo; sed 's/^/    /' "$out/worse.txt"; } >>"$out/summary.md"
  fi
  rm -f "$out/worse.txt"
else
  "$parsimony" report "$out/report.json" >"$out/summary.md"
fi
if ! grep -q '"holds": true' "$out/report.json"; then
  echo "gate.sh: the result is not proven; see $out/report.json" >&2
  [ "$status" -ne 0 ] || status=1
fi
cat "$out/summary.md"
[ -z "${GITHUB_STEP_SUMMARY:-}" ] || cat "$out/summary.md" >>"$GITHUB_STEP_SUMMARY"
exit "$status"
