#!/bin/sh
# Prunes torchvision's networks, from ONNX and from TorchScript, verifies each, and writes
# docs/results/zoo.md. Networks are exported one at a time into a cache and removed again; results are
# kept in a ledger beside the page, so that an interrupted run can be continued and the page always
# has every result.
#
#   tools/zoo.sh [OPTION...] [NAME...]     all networks, or these
#
#   --kind KIND      only classification, segmentation, detection, video or optical_flow
#   --runs RUN,...   of onnx:half-local, onnx:third-global, pt:half-local, pt:third-global (all)
#   --again          forgets what the ledger has of these
#   --keep           keeps the exported networks
#   --threads N      for running networks (2)
#   --command PATH   build/release/bin/parsimony
#   --cache FOLDER   where exports lie
#   --ledger FOLDER  where results lie (docs/results/zoo)
#   --no-page        leaves docs/results/zoo.md as it is
#
# Needs python3-torchvision, node and what tools/ort/install.sh installs. Exit code: 1 if any failed,
# 77 without python3-torchvision.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)

cache="${PARSIMONY_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/parsimony}/zoo"
page=yes
options=
ledger=
names=
while [ $# -gt 0 ]; do
  case $1 in
    -h | --help) sed -n '2,22s/^# \{0,1\}//p' "$0"; exit 0 ;;
    --cache) cache=$2; shift ;;
    --ledger) ledger="--ledger $2"; shift ;;
    --no-page) page= ;;
    --again | --keep) options="$options $1" ;;
    --kind | --runs | --threads | --command) options="$options $1 $2"; shift ;;
    -*) echo "zoo.sh: unknown option $1; see --help" >&2; exit 2 ;;
    *) names="$names $1" ;;
  esac
  shift
done

status=0
node "$root/tools/zoo/main.mjs" --cache "$cache" $ledger $options $names || status=$?
[ "$status" -le 1 ] || exit "$status"
[ -z "$page" ] || node "$root/tools/results.mjs"
exit "$status"
