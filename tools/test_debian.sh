#!/bin/sh
# Builds and tests the project in a tree of another Debian release: another libtorch, another g++.
#
#   tools/test_debian.sh [OPTION...] SUITE    bookworm (libtorch of PyPI), trixie (2.6) or forky (2.14)
#
#   --core           without libtorch (-DPARSIMONY_TORCH=OFF), in a build folder of its own
#   --jobs N         compilers and tests at a time (2)
#   --targets NAMES  builds only these, separated by blanks; say with --tests which of them to run
#   --tests REGEX    only tests whose names match; "none" runs none
#   --fast           only tests with the label "fast"
#   --mirror URL     where the packages come from (as this machine's apt does)
#   --shell          a shell in the tree, and nothing else
#
# The tree is build/debian-SUITE/root. It stays, with build folders and compiler cache, so that the
# next run compiles what has changed; remove build/debian-SUITE to begin afresh. It takes 3 GB, and
# 5 GB when everything is built. The sources are mounted into it, and what is written there is lost;
# the folder of PARSIMONY_TEST_DATA, if that is set, and what the cache has for the report's page, if
# there is one, are mounted read-only. Warnings of the other compiler are printed; they are no errors.
#
# Mounts and chroot need root: as another user it runs itself with sudo. fakechroot will not do.
# Exit codes: 0 all passed, 1 build or tests failed, 2 usage, 4 the tree could not be made.
set -eu
self=$0
source=$(cd "$(dirname "$0")/.." && pwd)

fail() { code=$1; shift; echo "test_debian.sh: $*" >&2; exit "$code"; }
. "$source/tools/debian_tree.sh"

suite=
kind=full
jobs=2
targets=
tests=.
label=.
mirror=
shell=
parse() {
  while [ $# -gt 0 ]; do
    case $1 in
      -h | --help) sed -n '2,22s/^# \{0,1\}//p' "$self"; exit 0 ;;
      --core) kind=core ;;
      --fast) label='^fast$' ;;
      --shell) shell=yes ;;
      --jobs) value "$@"; jobs=$2; shift ;;
      --targets) value "$@"; targets=$2; shift ;;
      --tests) value "$@"; tests=$2; shift ;;
      --mirror) value "$@"; mirror=$2; shift ;;
      -*) fail 2 "unknown option $1; see --help" ;;
      *) [ -z "$suite" ] || fail 2 "one suite at a time, found $suite and $1"; suite=$1 ;;
    esac
    shift
  done
  case $suite in
    bookworm | trixie | forky) ;;
    "") fail 2 "which suite? bookworm, trixie or forky; see --help" ;;
    *) fail 2 "unknown suite $suite: bookworm, trixie or forky" ;;
  esac
  case $jobs in
    "" | *[!0-9]* | 0) fail 2 "--jobs needs a number above 0, found \"$jobs\"" ;;
  esac
}
parse "$@"

cache="${PARSIMONY_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/parsimony}"
if [ "$(id -u)" -ne 0 ]; then
  command -v sudo >/dev/null 2>&1 || fail 4 "mounts and chroot need root, and there is no sudo"
  exec sudo PARSIMONY_CACHE="$cache" PARSIMONY_TEST_DATA="${PARSIMONY_TEST_DATA:-}" "$self" "$@"
fi

place="$source/build/debian-$suite"
tree="$place/root"

make_tree() {
  mkdir -p "$place"
  bare_tree "$suite" "$tree.new" "$place/debootstrap.log"
  # Neither manuals nor a cache of packages.
  printf 'path-exclude=/usr/share/%s/*\n' doc man locale >"$tree.new/etc/dpkg/dpkg.cfg.d/90small"
  echo 'APT::Keep-Downloaded-Packages "false";' >"$tree.new/etc/apt/apt.conf.d/90small"
  mkdir -p "$tree.new/build" "$tree.new/ccache"
  mv -T "$tree.new" "$tree"
}

# Runs a command of the tree. Mounts live and die with the command's own namespace.
within() {
  for file in /etc/resolv.conf /etc/pip.conf /etc/ssl/certs/ca-certificates.crt; do
    [ ! -e "$file" ] || cp -L "$file" "$tree$file"
  done
  data="${PARSIMONY_TEST_DATA:-}"
  SOURCE=$source TREE=$tree DATA=$data CACHE=$cache unshare --mount sh -euc '
    bind() {
      mkdir -p "$TREE$2"
      mount --bind "$1" "$TREE$2"
      mount -o remount,bind,ro "$TREE$2"
    }
    # CMake 4 writes where tests run, when it lists them.
    mount -t tmpfs tmpfs "$TREE/mnt"
    mkdir -p "$TREE/source" "$TREE/mnt/written" "$TREE/mnt/work"
    mount -t overlay overlay "$TREE/source" \
      -o "lowerdir=$SOURCE,upperdir=$TREE/mnt/written,workdir=$TREE/mnt/work"
    [ ! -d "$DATA" ] || bind "$DATA" /data
    for part in charts browser; do
      [ ! -d "$CACHE/$part" ] || bind "$CACHE/$part" "/root/.cache/parsimony/$part"
    done
    mount -t proc proc "$TREE/proc"
    mount --rbind /dev "$TREE/dev"
    cd "$TREE"
    exec chroot . /usr/bin/env -i HOME=/root PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C.UTF-8 \
      TERM="${TERM:-dumb}" CCACHE_DIR=/ccache CCACHE_MAXSIZE=5G "$@"
  ' within "$@"
}

[ -d "$tree" ] || make_tree
[ -z "$shell" ] || { within sh; exit; }
# The distribution's libtorch, where it is new enough; without PyTorch of our own, tests that export are
# skipped.
case $suite in
  bookworm) within /source/tools/setup.sh --build ;;
  *) within /source/tools/setup.sh --core &&
       within apt-get install -qq --no-install-recommends libtorch-dev libgloo-dev >/dev/null ;;
esac || fail 4 "the packages could not be installed"

torch=ON
[ "$kind" = full ] || torch=OFF
data=
[ -z "${PARSIMONY_TEST_DATA:-}" ] || data=/data
charts=ON
[ -d "$cache/charts" ] || charts=OFF
within sh -euc '
  kind=$1 torch=$2 data=$3 charts=$4 jobs=$5 targets=$6
  cmake -G Ninja -S /source -B "/build/$kind" -DCMAKE_BUILD_TYPE=Release \
    -DPARSIMONY_TORCH="$torch" -DPARSIMONY_UNITY=ON -DPARSIMONY_WERROR=OFF -DPARSIMONY_CHARTS="$charts" \
    -DPARSIMONY_TEST_DATA="$data" >"/build/$kind.log" 2>&1 || { cat "/build/$kind.log"; exit 1; }
  for name in g++ libtorch-dev libonnx-dev libprotobuf-dev libeigen3-dev libabsl-dev; do
    dpkg-query -W -f="\${Package} \${Version}\n" "$name" 2>/dev/null || true
  done
  cmake --build "/build/$kind" -j "$jobs" ${targets:+--target} $targets -- --quiet -k 0
' build "$kind" "$torch" "$data" "$charts" "$jobs" "$targets" ||
  fail 1 "the build failed; \"$self --shell $suite\" looks into the tree, /build/$kind is the folder"

[ "$tests" != none ] || exit 0
within ctest --test-dir "/build/$kind" -j "$jobs" -R "$tests" -L "$label" --output-on-failure \
  --timeout 900 --no-label-summary -O "/build/$kind-ctest.log" ||
  fail 1 "tests failed; the whole log is $tree/build/$kind-ctest.log"
