#!/bin/sh
# Makes packages from this tree: Debian packages (parsimony, parsimony-torch, parsimony-onnxruntime,
# libparsimony-dev), an archive of the command with all that it needs but the C library, and a Python
# wheel of the same.
#
#   tools/package.sh [--out DIR] [--build DIR] [--no-torch] [--without-ort] [--twice]
#
#   --out DIR      where they go (build/packages)
#   --build DIR    where they are compiled (build/package-ON, or -OFF without libtorch)
#   --no-torch     no libtorch: neither parsimony-torch, nor half of libparsimony-dev
#   --without-ort  without the library of ONNX Runtime, which runs the proofs where libtorch is not
#   --twice        compiles and makes everything again in DIR-again; 1 if a byte differs
#
# Archive and wheel run wherever the C library is at least as new as the wheel's name says; they have
# a bill of materials (SPDX) and the licences of what is inside. The same commit and the same
# versions of the distribution's packages give the same bytes.
set -eu
cd "$(dirname "$0")/.."

out=build/packages
build=
torch=ON
ort=yes
twice=
while [ $# -gt 0 ]; do
  case "$1" in
    -h | --help) sed -n '2,16s/^# \{0,1\}//p' "$0"; exit 0 ;;
    --out) out=$2; shift 2 ;;
    --build) build=$2; shift 2 ;;
    --no-torch) torch=OFF; shift ;;
    --without-ort) ort=; shift ;;
    --twice) twice=yes; shift ;;
    *) echo "package.sh: unknown argument $1; see --help" >&2; exit 2 ;;
  esac
done
build=${build:-build/package-$torch}
mkdir -p "$build" "$out"
build=$(cd "$build" && pwd)
out=$(cd "$out" && pwd)

# Twice -------------------------------------------------------------------------------------------

# What FILE has inside, in the new folder INSIDE.
unpack() {
  mkdir -p "$2"
  case $1 in
    *.deb) dpkg-deb -R "$1" "$2" ;;
    *.tar.gz) tar -C "$2" -xzf "$1" ;;
    *.whl) /usr/bin/python3 -m zipfile -e "$1" "$2" ;;
  esac
}

# Names, times, modes and order.
members() {
  case $1 in
    *.deb) dpkg-deb -c "$1" ;;
    *.tar.gz) tar -tvzf "$1" ;;
    *.whl) /usr/bin/python3 -c 'import sys, zipfile
for entry in zipfile.ZipFile(sys.argv[1]).infolist(): print(entry)' "$1" ;;
  esac
}

# The first member that differs between two packages; not the sums, which follow the others.
difference() {
  unpack "$1" "$scratch/1/in" && unpack "$2" "$scratch/2/in"
  (cd "$scratch" && LC_ALL=C diff -qr --no-dereference -x md5sums -x RECORD 1/in 2/in) >"$scratch/differs" ||
    { sed -n '1{s,^Files 1/in/\(.*\) and .*,\1,;s,[12]/in/*,,;p}' "$scratch/differs"; return; }
  members "$1" >"$scratch/1/members"
  members "$2" >"$scratch/2/members"
  diff "$scratch/1/members" "$scratch/2/members" | sed -n '2p' | grep . || echo "only the packing differs"
}

if [ -n "$twice" ]; then
  again=$build-again
  set -- --out "$out" --build "$build"
  [ "$torch" = ON ] || set -- --no-torch "$@"
  [ -n "$ort" ] || set -- --without-ort "$@"
  tools/package.sh "$@"
  rm -rf "$again"
  CCACHE_RECACHE=1 tools/package.sh "$@" --out "$again/out" --build "$again"
  scratch=$(mktemp -d)
  trap 'rm -rf "$scratch"' EXIT
  for file in "$again"/out/*; do
    name=${file##*/}
    cmp -s "$out/$name" "$file" && continue
    [ -e "$out/$name" ] || { echo "package.sh: $name was made only once" >&2; exit 1; }
    echo "package.sh: $name differs: $(difference "$out/$name" "$file")" >&2
    exit 1
  done
  echo "package.sh: the same bytes twice"
  exit 0
fi

# Compiling ---------------------------------------------------------------------------------------

if [ "$torch" = ON ]; then tools/setup.sh --build; else tools/setup.sh --core; fi
needed=
for program in patchelf:patchelf dpkg-shlibdeps:dpkg-dev fakeroot:fakeroot objdump:binutils file:file; do
  command -v "${program%%:*}" >/dev/null 2>&1 || needed="$needed ${program##*:}"
done
# shellcheck disable=SC2086  # words
[ -z "$needed" ] || apt-get install -y -qq $needed
if [ -n "$ort" ]; then
  environment=${PARSIMONY_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/parsimony}/python
  ort=$(find "$environment/lib" -path "*/onnxruntime/capi/*" -name "libonnxruntime.so*" | head -n 1)
  [ -n "$ort" ] || { echo "package.sh: there is no ONNX Runtime in $environment" >&2; exit 4; }
fi

SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
export SOURCE_DATE_EPOCH
umask 022
version=$(sed -n 's/^  VERSION \([0-9.]*\)$/\1/p' CMakeLists.txt)
# Of two that fit, the compiler takes the last.
flags="-ffile-prefix-map=$PWD=. -ffile-prefix-map=$build=./build -DNDEBUG"
cmake -G Ninja -B "$build" -DCMAKE_BUILD_TYPE=Release -DPARSIMONY_TESTS=OFF -DPARSIMONY_UNITY=ON \
  -DPARSIMONY_TORCH="$torch" -DCMAKE_INSTALL_PREFIX=/usr -DCMAKE_CXX_FLAGS="$flags" \
  -DPARSIMONY_ONNXRUNTIME_LIBRARY="$ort" \
  -DCPACK_PACKAGE_CONTACT="$(git log -1 --format='%an <%ae>')" >/dev/null
cmake --build "$build" -- --quiet
rm -f "$out"/*.deb "$out"/parsimony-*.tar.gz "$out"/parsimony_pruning-*.whl

# Debian packages ---------------------------------------------------------------------------------

(cd "$build" && cpack -G DEB -B "$build/cpack" >cpack.log 2>&1) || { cat "$build/cpack.log" >&2; exit 4; }
mv "$build"/cpack/*.deb "$out"
rm -rf "$build/cpack"

# The archive -------------------------------------------------------------------------------------

name=parsimony-$version-$(uname -m)
stage=$build/stage/$name
rm -rf "$build/stage"
cmake --install "$build" --component command --prefix "$stage" --strip >/dev/null
# Debian's multiarch folder is the installation's; the archive has one.
inside=$stage/lib/parsimony
found=$(find "$stage" -name networks.zip)
[ "$(dirname "$found")" = "$inside" ] || { mkdir -p "$inside"; mv "$found" "$inside"; }
find "$stage" -type d -empty -delete
licences=$stage/share/doc/parsimony/licences
mkdir -p "$licences"
cp LICENSE "$stage/share/doc/parsimony/"

# All shared libraries but those of the C library.
libraries() {
  ldd "$1" | awk '$2 == "=>" { print $3 }' |
    grep -Ev '/(libc|libm|libdl|libpthread|librt|ld-linux[^/]*)\.so\.[0-9]+$' | sort
}

bom=$stage/share/doc/parsimony/sbom.spdx.json
{
  printf '{\n  "spdxVersion": "SPDX-2.3",\n  "dataLicense": "CC0-1.0",\n  "SPDXID": "SPDXRef-DOCUMENT",\n'
  printf '  "name": "%s",\n  "documentNamespace": "urn:parsimony:%s:%s",\n' \
    "$name" "$name" "$(git rev-parse HEAD)"
  printf '  "creationInfo": {"created": "%s", "creators": ["Tool: tools/package.sh"]},\n' \
    "$(date -u -d "@$SOURCE_DATE_EPOCH" +%Y-%m-%dT%H:%M:%SZ)"
  printf '  "packages": [\n'
  printf '    {"SPDXID": "SPDXRef-parsimony", "name": "parsimony", "versionInfo": "%s", "licenseConcluded": "Apache-2.0", "downloadLocation": "NOASSERTION"}' "$version"
} >"$bom"
for library in $(libraries "$build/bin/parsimony"); do
  real=$(readlink -f "$library")
  base=$(basename "$library")
  install -m 644 "$real" "$inside/$base"
  patchelf --set-rpath "\$ORIGIN" "$inside/$base"
  place="*/$(basename "$(dirname "$real")")/$(basename "$real")"  # in /lib or /usr/lib
  package=$(dpkg-query -S "$place" 2>/dev/null | head -n 1 | cut -d: -f1)
  [ -n "$package" ] || { echo "package.sh: no package owns $library" >&2; exit 4; }
  # shellcheck disable=SC2016  # the format is dpkg's
  source=$(dpkg-query -W -f='${source:Package} ${source:Version}' "$package")
  grep -q "\"$base\"" "$bom" ||
    printf ',\n    {"SPDXID": "SPDXRef-%s", "name": "%s", "packageFileName": "%s", "versionInfo": "%s", "supplier": "Organization: Debian", "licenseConcluded": "NOASSERTION", "downloadLocation": "NOASSERTION"}' \
      "$(echo "$base" | tr -c 'A-Za-z0-9.\n' '-')" "${source% *}" "$base" "${source#* }" >>"$bom"
  cp "/usr/share/doc/$package/copyright" "$licences/$package"
done
if [ -n "$ort" ]; then
  install -m 644 "$ort" "$inside/libonnxruntime.so.1"
  cp packaging/licences/onnxruntime "$licences"
  printf ',\n    {"SPDXID": "SPDXRef-onnxruntime", "name": "onnxruntime", "packageFileName": "libonnxruntime.so.1", "versionInfo": "%s", "licenseConcluded": "MIT", "downloadLocation": "NOASSERTION"}' \
    "${ort##*.so.}" >>"$bom"
fi
printf '\n  ]\n}\n' >>"$bom"
patchelf --set-rpath "\$ORIGIN/../lib/parsimony" "$stage/bin/parsimony"
tar -C "$build/stage" --sort=name --mtime="@$SOURCE_DATE_EPOCH" --owner=0 --group=0 --numeric-owner \
  -cf - "$name" | gzip -9n >"$out/$name.tar.gz"

# The wheel ---------------------------------------------------------------------------------------

# The newest symbol version of the C library that anything inside asks for.
glibc=$(find "$stage/bin" "$inside" -type f ! -name '*.zip' -exec objdump -T {} + |
  grep -o 'GLIBC_[0-9][0-9.]*' | sort -Vu | tail -n 1)
version_of_glibc=$(echo "${glibc#GLIBC_}" | tr . _)
/usr/bin/python3 python/build_wheel.py --prefix "$stage" --out "$out" \
  --platform "manylinux_${version_of_glibc}_$(uname -m)" >/dev/null

ls -l "$out"
