#!/bin/sh
# Installs what building, testing and checking Parsimony needs on Debian bookworm, and puts what
# tools/requirements.txt names into a virtual environment in the cache, and PyTorch, whose libtorch
# is built with, into another (tools/environment.py). Asks first, so that it costs nothing where
# everything is there.
#
#   tools/setup.sh [--build | --core]
#
#   --build  what building and ctest need; neither clang nor browser
#   --core   of that, what -DPARSIMONY_TORCH=OFF needs
set -eu

build_only=
core=
case "${1:-}" in
  "") ;;
  --build) build_only=yes ;;
  --core) build_only=yes core=yes ;;
  -h | --help) sed -n '2,10s/^# \{0,1\}//p' "$0"; exit 0 ;;
  *) echo "setup.sh: unknown argument $1; see --help" >&2; exit 2 ;;
esac

packages="
  g++ cmake ninja-build ccache
  libonnx-dev libprotobuf-dev protobuf-compiler libeigen3-dev nlohmann-json3-dev libcli11-dev
  libabsl-dev libre2-dev libssl-dev libmimalloc-dev
  libjpeg62-turbo-dev libpng-dev libsndfile1-dev
  libgtest-dev librapidcheck-dev libbenchmark-dev libonnx-testdata zlib1g-dev
  python3-pytest python3-tqdm python3-setuptools python3-wheel python3-pip
  python3-venv
"
[ -n "$core" ] || packages="$packages libgloo-dev"
if [ -z "$build_only" ]; then
  packages="$packages clang-14 libclang-rt-14-dev clang-format-14 clang-tidy-14 doxygen"
  # For the report's page: its charts, and the browser that looks at it in the tests. What is there
  # already, from wherever, will do.
  for program in npm chromium; do
    command -v "$program" >/dev/null 2>&1 || packages="$packages $program"
  done
fi

installed() {
  dpkg-query -W -f='${db:Status-Abbrev}' "$1" 2>/dev/null | grep -q '^.i'
}

missing=
for package in $packages; do
  installed "$package" || missing="$missing $package"
done

# Debian's Python is the one that the pinned packages were chosen for.
python_environment() {
  python=/usr/bin/python3
  [ -x "$python" ] || python=python3
  "$python" "$(dirname "$0")/environment.py" || {
    echo "setup.sh: the tests by ONNX Runtime need it; building does not" >&2
    [ -n "$build_only" ] || exit 4
  }
  [ -n "$core" ] || "$python" "$(dirname "$0")/environment.py" torch || exit 4
}

[ -n "$missing" ] || { python_environment; exit; }

if ! command -v apt-get >/dev/null 2>&1; then
  echo "setup.sh: no apt-get here. Install what your system calls these:$missing" >&2
  exit 4
fi
as_root=
if [ "$(id -u)" -ne 0 ]; then
  command -v sudo >/dev/null 2>&1 || {
    echo "setup.sh: needs root or sudo to install:$missing" >&2
    exit 4
  }
  as_root=sudo
fi

echo "setup.sh: installing$missing" >&2
install="$as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends"
# The package lists may be absent or old; fetch them only if the first try fails.
$install $missing >/dev/null 2>&1 || {
  $as_root apt-get update
  $install $missing
}

python_environment
