#!/bin/sh
# Builds with a CUDA libtorch and measures docs/results/data/gpu.json: training steps in float32, bf16
# and fp16, in both memory formats, and where an epoch's time goes.
#
#   tools/gpu_check.sh LIBTORCH
#
# LIBTORCH is the folder of a CUDA build of libtorch. Exit code 77, and nothing is built, where there
# is no CUDA device.
set -eu
case "${1:-}" in
  -h | --help) sed -n '2,8s/^# \{0,1\}//p' "$0"; exit 0 ;;
esac
[ $# -eq 1 ] || { echo "usage: gpu_check.sh LIBTORCH" >&2; exit 2; }
if ! nvidia-smi -L > /dev/null 2>&1; then
  echo "gpu_check.sh: no CUDA device here: nothing is measured"
  exit 77
fi
libtorch=$(realpath "$1")
cd "$(dirname "$0")/.."
cmake --preset release -B build/gpu -DPARSIMONY_TESTS=OFF -DCMAKE_PREFIX_PATH="$libtorch" > /dev/null
cmake --build build/gpu --target parsimony -- --quiet
node tools/gpu_check.mjs build/gpu/bin/parsimony > docs/results/data/gpu.json
node tools/results.mjs
