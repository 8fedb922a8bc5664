#!/bin/sh
# Installs what building, testing and checking Parsimony needs on Debian bookworm.
# Asks dpkg first, so that it costs nothing where everything is there.
set -eu

packages="
  g++ cmake ninja-build ccache
  libonnx-dev libprotobuf-dev protobuf-compiler libeigen3-dev nlohmann-json3-dev libcli11-dev
  libabsl-dev libre2-dev libssl-dev libmimalloc-dev libtorch-dev
  libgtest-dev librapidcheck-dev libbenchmark-dev libonnx-testdata
  clang-14 libclang-rt-14-dev clang-format-14 clang-tidy-14
"
# Node runs the oracle. A Node that is there already, from wherever, will do.
command -v node >/dev/null 2>&1 || packages="$packages nodejs"
command -v npm >/dev/null 2>&1 || packages="$packages npm"

installed() {
  dpkg-query -W -f='${db:Status-Abbrev}' "$1" 2>/dev/null | grep -q '^.i'
}

missing=
for package in $packages; do
  installed "$package" || missing="$missing $package"
done
[ -n "$missing" ] || exit 0

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
