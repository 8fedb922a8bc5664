#!/bin/sh
# Builds with the libtorch of an installed PyTorch on a machine with a CUDA device, checks training
# there against the processor's, and measures docs/results/data/accelerator.json
# (tools/accelerator.py).
#
#   tools/gpu_check.sh [--build-only] [OPTION of accelerator.py...]
#
#   PYTHON=python3    the Python whose PyTorch serves
#
# What else building needs (tools/setup.sh --core) must be there. Exit code 77, and nothing
# is built, where there is no CUDA device.
set -eu
case "${1:-}" in
  -h | --help) sed -n '2,12s/^# \{0,1\}//p' "$0"; exit 0 ;;
esac
if ! nvidia-smi -L > /dev/null 2>&1; then
  echo "gpu_check.sh: no CUDA device here: nothing is measured"
  exit 77
fi
cd "$(dirname "$0")/.."
python=${PYTHON:-python3}
torch=$("$python" -c 'import os, torch; print(os.path.dirname(torch.__file__))')
cores=$(nproc)
begin=$(date +%s)
cmake --preset release -B build/gpu -DPARSIMONY_TESTS=OFF -DPARSIMONY_BENCH=OFF \
  -DPARSIMONY_WERROR=OFF -DPARSIMONY_PYTORCH="$torch" > /dev/null
cmake --build build/gpu --target parsimony -j "$cores" -- --quiet
echo "gpu_check.sh: built in $(($(date +%s) - begin)) s on $cores cores"
[ "${1:-}" != --build-only ] || exit 0
"$python" tools/accelerator.py build/gpu/bin/parsimony "$@"
