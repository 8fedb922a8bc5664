#!/bin/sh
# Builds with the libtorch of a release of PyTorch, taken from PyPI without its CUDA libraries but two,
# and runs the tests that need libtorch.
#
#   tools/test_torch.sh VERSION [CTEST_ARGUMENT...]     2.7.0 or later, for instance 2.15.0
set -eu
cd "$(dirname "$0")/.."
case "${1:-}" in
  "" | -h | --help) sed -n '2,5s/^# \{0,1\}//p' "$0"; exit 0 ;;
esac
version=$1
shift

cache=${PARSIMONY_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/parsimony}
place=$cache/libtorch-$version
if [ ! -e "$place/complete" ]; then
  rm -rf "$place"
  /usr/bin/python3 -m venv "$place"
  # Releases up to 2.10 are for CUDA 12.
  case $version in
    2.[7-9].* | 2.10.*) runtime="nvidia-cuda-runtime-cu12 nvidia-cuda-cupti-cu12" ;;
    *) runtime="nvidia-cuda-runtime nvidia-cuda-cupti" ;;
  esac
  # shellcheck disable=SC2086  # two names
  "$place/bin/pip" install --quiet --disable-pip-version-check --no-deps "torch==$version" $runtime
  touch "$place/complete"
fi

build=build/torch-$version
cmake --preset release -B "$build" -DPARSIMONY_BENCH=OFF -DPARSIMONY_PYTORCH="$(echo "$place"/lib/python*/site-packages/torch)"
cmake --build "$build" -- --quiet
ctest --test-dir "$build" -j2 --no-label-summary --output-on-failure "$@"
