#!/bin/sh
# Checks the wheel of tools/package.sh: its size, what it wants from the system, what auditwheel says; and, in
# other Pythons and in bare trees of other releases, that it installs without torch, prunes and proves.
#
#   tools/test_wheel.sh [OPTION...] MODEL.onnx
#
#   --wheel FILE      the wheel (this processor's in build/packages); one for another is not run
#   --python PROGRAM  a Python; may be repeated
#   --suite NAME      a Debian release; may be repeated
#   --trees DIR       bare trees of the releases, made where they are missing (build/trees)
#   --mirror URL      where releases come from (as this machine's apt does)
#
# Packages of Python come from where this machine's pip takes them. Trees are not changed. Mounts and chroot need
# root.
# Exit codes: 0 all is well, 1 something is not, 2 usage, 4 a tree could not be made.
set -eu
fail() { code=$1; shift; echo "test_wheel.sh: $*" >&2; exit "$code"; }

root=$(cd "$(dirname "$0")/.." && pwd)
. "$root/tools/debian_tree.sh"
wheel=
pythons=
suites=
trees=$root/build/trees
mirror=
model=
while [ $# -gt 0 ]; do
  case $1 in
    -h | --help) sed -n '2,16s/^# \{0,1\}//p' "$0"; exit 0 ;;
    --wheel) value "$@"; wheel=$2; shift ;;
    --python) value "$@"; pythons="$pythons $2"; shift ;;
    --suite) value "$@"; suites="$suites $2"; shift ;;
    --trees) value "$@"; trees=$2; shift ;;
    --mirror) value "$@"; mirror=$2; shift ;;
    -*) fail 2 "unknown option $1; see --help" ;;
    *) model=$1 ;;
  esac
  shift
done
[ -f "$model" ] || fail 2 "which model? See --help"
[ -n "$wheel" ] || wheel=$(find "$root/build/packages" -name "parsimony_pruning-*_$(uname -m).whl")
[ -f "$wheel" ] || fail 2 "there is no wheel; tools/package.sh makes one"
wheel=$(realpath "$wheel") model=$(realpath "$model")
scratch=$(mktemp -d)
trap 'rm -rf --one-file-system "$scratch"' EXIT

# What it is --------------------------------------------------------------------------------------

mkdir "$scratch/inside"
python3 -m zipfile -e "$wheel" "$scratch/inside"
prefix=$scratch/inside/parsimony/_prefix
size=$(stat -c %s "$wheel")
echo "size: $size bytes"
[ "$size" -le 31457280 ] || fail 1 "the wheel is larger than 30 MB"
glibc=$(find "$prefix/bin" "$prefix/lib" -type f ! -name '*.zip' -exec readelf -V {} + |
  grep -o 'GLIBC_[0-9][0-9.]*' | sort -Vu | tail -n 1)
echo "newest symbols: $glibc"
[ "$(printf '%s\nGLIBC_2.35\n' "$glibc" | sort -V | tail -n 1)" = GLIBC_2.35 ] || fail 1 "it wants $glibc"
find "$prefix/bin" "$prefix/lib" -type f ! -name '*.zip' -exec readelf -d {} + |
  sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' | sort -u | grep -Ev '^(libc|libm|ld-linux.*)\.so\.[0-9]+$' |
  while read -r library; do
    [ -e "$prefix/lib/parsimony/$library" ] || fail 1 "it wants $library from the system"
  done
python3 -m venv "$scratch/audit"
"$scratch/audit/bin/pip" -q --disable-pip-version-check install auditwheel
"$scratch/audit/bin/auditwheel" show "$wheel"
case $wheel in *"_$(uname -m).whl") ;; *) exit 0 ;; esac

# Whether it runs ---------------------------------------------------------------------------------

# What runs for each Python. Neither the caches of the user nor variables help it.
# shellcheck disable=SC2016  # the inner shell expands it
check='
  python=$1 pip=$2 wheel=$3 model=$4 place=$5
  "$python" -m venv --without-pip "$place"
  "$python" "$pip/pip" -q --disable-pip-version-check --python "$place/bin/python" install "$wheel" \
    --root-user-action ignore
  cd "$place"
  clean() { env -i PATH=/usr/bin:/bin HOME="$place" LC_ALL=C.UTF-8 "$@"; }
  clean bin/python -c "import parsimony, sys
print(f\"Python {sys.version.split()[0]}: \", end=\"\", flush=True)
parsimony.prune_onnx(sys.argv[1], \"small.onnx\", ratio=0.5)" "$model"
  clean bin/python -m parsimony --version | tr "\n" " "
  clean bin/parsimony prune "$model" -o small.onnx --ratio 0.5 --engine onnxruntime | tail -n 1
'
mkdir "$scratch/pip"
"$scratch/audit/bin/pip" -q --disable-pip-version-check download --no-deps -d "$scratch/pip" pip
pip=$(echo "$scratch"/pip/pip-*.whl)

for python in $pythons; do
  sh -euc "$check" check "$python" "$pip" "$wheel" "$model" "$scratch/$(basename "$python").$$.$((n = ${n:-0} + 1))" ||
    fail 1 "not with $python"
done

for suite in $suites; do
  mkdir -p "$trees"
  trees=$(realpath "$trees")
  [ -d "$trees/$suite" ] || {
    bare_tree "$suite" "$trees/$suite.new" "$trees/$suite.log"
    mv -T "$trees/$suite.new" "$trees/$suite"
  }
  place=$(mktemp -d "$trees/try.XXXXXX")
  mkdir "$place/tree" "$place/added" "$place/work"
  echo "$suite, glibc $(chroot "$trees/$suite" ldd --version | sed -n '1s/.* //p')"
  # shellcheck disable=SC2016
  PLACE=$place TREE=$trees/$suite PIP=$pip WHEEL=$wheel MODEL=$model unshare --mount sh -euc '
    cd "$PLACE"
    mount -t overlay overlay tree -o "lowerdir=$TREE,upperdir=added,workdir=work"
    mount -t proc proc tree/proc
    mount --rbind /dev tree/dev
    for file in /etc/resolv.conf /etc/pip.conf /etc/ssl/certs/ca-certificates.crt; do
      [ ! -e "$file" ] || cp -L "$file" "tree$file"
    done
    cp "$PIP" "$WHEEL" tree/opt
    cp "$MODEL" tree/opt/model.onnx
    cd tree
    exec chroot . /usr/bin/env -i HOME=/root PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C.UTF-8 \
      DEBIAN_FRONTEND=noninteractive sh -euc "
        { apt-get -qq update && apt-get -qq install -y --no-install-recommends python3; } >/opt/log 2>&1 || {
          tail -n 3 /opt/log >&2
          exit 1
        }
        $1" check python3 "/opt/${PIP##*/}" "/opt/${WHEEL##*/}" /opt/model.onnx /opt/p
  ' within "$check" || fail 1 "not in $suite"
  rm -rf --one-file-system "$place"
done
