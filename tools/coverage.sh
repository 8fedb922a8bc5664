#!/bin/sh
# Exports the networks of tools/architectures as ONNX, TorchScript and .pt2, prunes each file by half,
# with proof, and writes docs/results/data/coverage.json and its page. What the folder has already is
# neither exported nor pruned again, so that an interrupted run can be continued.
#
#   tools/coverage.sh [OPTION...] [NAME...]     all networks, or these; the page always has all
#
#   --folder FOLDER   where exports and reports lie
#   --python PROGRAM  a Python whose torch exports ONNX and TorchScript (/usr/bin/python3, Debian's)
#   --pt2 PROGRAM     one whose torch has torch.export, 2.6 or newer; may be several words (python3)
#   --command PATH    build/release/bin/parsimony
#   --again           prunes again what has been pruned
#   --threads N       for running networks (1)
#   --no-page         leaves docs/results as it is
#
# Exit code: 1 if tools/coverage/reasons.json has no reason for a file that was not pruned or not proven,
# of which much is left, or that differs between formats.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)

folder="${PARSIMONY_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/parsimony}/coverage"
python=/usr/bin/python3
pt2=python3
options=
names=
while [ $# -gt 0 ]; do
  case $1 in
    -h | --help) sed -n '2,18s/^# \{0,1\}//p' "$0"; exit 0 ;;
    --folder) folder=$2; shift ;;
    --python) python=$2; shift ;;
    --pt2) pt2=$2; shift ;;
    --again | --no-page) options="$options $1" ;;
    --command | --threads) options="$options $1 $2"; shift ;;
    -*) echo "coverage.sh: unknown option $1; see --help" >&2; exit 2 ;;
    *) names="$names $1" ;;
  esac
  shift
done

$python "$root/tools/coverage/export.py" "$folder" onnx,pt $names
$pt2 "$root/tools/coverage/export.py" "$folder" pt2 $names
node "$root/tools/coverage/main.mjs" --folder "$folder" $options $names
