#!/bin/sh
# Times the packages from nothing: unpacks or installs each in a bare tree of a Debian release, then
# removes half of a model's channels with it, and proves the result.
#
#   tools/try_packages.sh [OPTION...] SUITE... MODEL.onnx
#
#   --packages DIR  what tools/package.sh made (build/packages)
#   --trees DIR     bare trees of the suites, made where they are missing (build/trees)
#   --mirror URL    where the suites come from (as this machine's apt does)
#
# A row for each suite and package: the seconds that the distribution's packages take (lists and
# python3-venv), installing ours, and pruning; what has then been added to the tree, without lists and
# caches, in MB; and the command's last line. Packages for another release cannot be installed; that
# is a row too. Trees are not changed: what is written goes beside them, and is lost.
#
# Mounts and chroot need root. Exit codes: 0 at least one package proved its result in every suite,
# 1 none in some suite, 2 usage, 4 a tree could not be made.
set -eu
fail() { code=$1; shift; echo "try_packages.sh: $*" >&2; exit "$code"; }

root=$(cd "$(dirname "$0")/.." && pwd)
. "$root/tools/debian_tree.sh"
packages=$root/build/packages
trees=$root/build/trees
mirror=
suites=
model=
while [ $# -gt 0 ]; do
  case $1 in
    -h | --help) sed -n '2,18s/^# \{0,1\}//p' "$0"; exit 0 ;;
    --packages) value "$@"; packages=$2; shift ;;
    --trees) value "$@"; trees=$2; shift ;;
    --mirror) value "$@"; mirror=$2; shift ;;
    -*) fail 2 "unknown option $1; see --help" ;;
    *) suites="$suites $model" model=$1 ;;
  esac
  shift
done
[ -n "${suites# }" ] || fail 2 "which suites, and which model? See --help"
[ -f "$model" ] || fail 2 "$model is no file; the model comes last"
[ "$(id -u)" -eq 0 ] || fail 4 "mounts and chroot need root"
mkdir -p "$trees"
model=$(realpath "$model") packages=$(realpath "$packages") trees=$(realpath "$trees")

# What runs in a tree: each prints the times in nanoseconds between its steps, then a line.
# shellcheck disable=SC2016  # the shell in the tree expands it
steps='
  now() { date +%s%N; }
  why() { grep -m 1 " : Depends: " /mnt/log || tail -n 1 /mnt/log; }
  lists() { apt-get -qq update; }
  get() { apt-get -q install -y --no-install-recommends "$@"; }
  archive() {
    distribution() { :; }
    ours() { mkdir /opt/p && tar -C /opt/p --strip-components=1 -xzf /mnt/packages/parsimony-*.tar.gz; }
    command=/opt/p/bin/parsimony
  }
  wheel() {
    distribution() { lists && get python3-venv; }
    ours() { python3 -m venv /opt/p && /opt/p/bin/pip install -q /mnt/packages/parsimony_pruning-*"_$(uname -m).whl"; }
    command=/opt/p/bin/parsimony
  }
  deb() {
    distribution() { lists; }
    ours() { get /mnt/packages/parsimony_*.deb /mnt/packages/parsimony-onnxruntime_*.deb; }
    command=parsimony
  }
  $1
  t0=$(now)
  distribution >/mnt/log 2>&1 || { echo "0 0 0 0 fails: $(why)"; exit; }
  t1=$(now)
  ours >/mnt/log 2>&1 || { echo "0 0 0 0 fails: $(why)"; exit; }
  t2=$(now)
  $command prune /mnt/model.onnx -o /mnt/small.onnx --ratio 0.5 >/mnt/log 2>&1 || true
  t3=$(now)
  echo "$t0 $t1 $t2 $t3 $(tail -n 1 /mnt/log)"
'

# The package $2 in a tree of the suite $1: the times and the line above, and a line with the size.
try() {
  scratch=$(mktemp -d "$trees/try.XXXXXX")
  mkdir "$scratch/tree" "$scratch/added" "$scratch/work"
  # shellcheck disable=SC2016
  SCRATCH=$scratch TREE=$trees/$1 PACKAGES=$packages MODEL=$model unshare --mount sh -euc '
    cd "$SCRATCH"
    mount -t overlay overlay tree -o "lowerdir=$TREE,upperdir=added,workdir=work"
    mount -t tmpfs tmpfs tree/mnt
    mkdir tree/mnt/packages
    touch tree/mnt/model.onnx
    mount --bind "$PACKAGES" tree/mnt/packages
    mount --bind "$MODEL" tree/mnt/model.onnx
    mount -t proc proc tree/proc
    mount --rbind /dev tree/dev
    for file in /etc/resolv.conf /etc/pip.conf /etc/ssl/certs/ca-certificates.crt; do
      [ ! -e "$file" ] || cp -L "$file" "tree$file"
    done
    cd tree
    chroot . /usr/bin/env -i HOME=/root PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C.UTF-8 \
      DEBIAN_FRONTEND=noninteractive sh -euc "$2" steps "$1"
  ' within "$2" "$steps"
  du -sm --exclude=lib/apt --exclude=cache --exclude=log "$scratch/added" | cut -f 1
  rm -rf --one-file-system "$scratch"
}

row() { printf '%-9s %-6s %-8s %7s %7s %7s %7s %5s  %s\n' "$@"; }

row suite glibc package lists install prune total MB result
code=0
for suite in $suites; do
  [ -d "$trees/$suite" ] || {
    bare_tree "$suite" "$trees/$suite.new" "$trees/$suite.log"
    mv -T "$trees/$suite.new" "$trees/$suite"
  }
  glibc=$(chroot "$trees/$suite" ldd --version | sed -n '1s/.* //p')
  proven=
  for package in archive wheel deb; do
    try "$suite" "$package" >"$trees/row"
    IFS= read -r line <"$trees/row"
    size=$(sed -n '2p' "$trees/row")
    rm "$trees/row"
    result=${line#* * * * }
    case $result in Proven:*) proven=yes result=proven ;; esac
    # shellcheck disable=SC2046  # words: four times
    set -- $(echo "$line" | awk '{ for (i = 2; i <= 4; i++) printf "%.1f ", ($i - $(i - 1)) / 1e9
                                   printf "%.1f", ($4 - $1) / 1e9 }')
    row "$suite" "$glibc" "$package" "$@" "$size" "$result"
  done
  [ -n "$proven" ] || code=1
done
exit "$code"
