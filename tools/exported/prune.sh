#!/bin/sh
# Prunes exported networks by half: SMALL/NAME.pt2, its plan NAME.json, its report NAME.report.json,
# and the small network exported again, NAME.onnx.
#
#   tools/exported/prune.sh FOLDER SMALL [NAME ...]      PARSIMONY_COMMAND: build/release/bin/parsimony
set -eu
folder=$1 small=$2
shift 2
command=${PARSIMONY_COMMAND:-$(cd "$(dirname "$0")/../.." && pwd)/build/release/bin/parsimony}
mkdir -p "$small"
[ $# -gt 0 ] || set -- $(cd "$folder" && ls -- *.pt2 | sed 's/\.pt2$//')
for name in "$@"; do
  to="$small/$name"
  rm -f "$to.pt2" "$to.onnx"
  "$command" prune -q "$folder/$name.pt2" -o "$to.pt2" --ratio 0.5 --plan "$to.json" \
    --report "$to.report.json" || continue
  "$command" export -q "$to.pt2" -o "$to.onnx" || true
done
