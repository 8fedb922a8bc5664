#!/bin/sh
# Judges pruned models by ONNX Runtime: what the small model computes against the original with the
# planned slices set to zero.
#
#   tools/oracle.sh WRITER fixtures
#   tools/oracle.sh WRITER random COUNT
#   tools/oracle.sh WRITER blocks COUNT
#   tools/oracle.sh WRITER models MODELS
#
# WRITER is the build's tests/write_models. Mismatches are printed; they and what was compared stay in
# the folder that the last line names.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)

if [ $# -lt 2 ]; then
  sed -n '2,11s/^# \{0,1\}//p' "$0" >&2
  exit 2
fi
writer=$1
what=$2
shift 2

folder=$(mktemp -d)
if [ "$what" = models ]; then
  "$writer" models "$folder" "$1" "$root/tests/models/inputs.txt"
else
  "$writer" "$what" "$folder" "$@"
fi

status=0
"$root/tools/ort_compare.py" --batch "$folder/list.tsv" >"$folder/verdicts.txt" || status=$?
tail -n 3 "$folder/verdicts.txt"
if [ "$status" -ne 0 ]; then
  grep -E '^(MISMATCH|NONFINITE|ERROR)' "$folder/verdicts.txt" || true
  echo "oracle.sh: the models are in $folder" >&2
else
  rm -rf "$folder"
fi
exit "$status"
