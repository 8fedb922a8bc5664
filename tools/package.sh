#!/bin/sh
# Makes packages from this tree: Debian packages (parsimony, parsimony-torch, libparsimony-dev) and
# an archive of the command with all that it needs but the C library.
#
#   tools/package.sh [--out DIR] [--no-torch] [--without-ort]
#
#   --out DIR      where they go (build/packages)
#   --no-torch     no libtorch: neither parsimony-torch, nor half of libparsimony-dev
#   --without-ort  the archive has no library of ONNX Runtime, which runs its proofs
#
# The archive runs wherever the C library is at least as new as the one here; it has a bill of
# materials (SPDX) and the licences of what is inside. The same commit on the same distribution
# gives the same bytes.
set -eu
cd "$(dirname "$0")/.."

out=build/packages
torch=ON
ort=yes
while [ $# -gt 0 ]; do
  case "$1" in
    -h | --help) sed -n '2,13s/^# \{0,1\}//p' "$0"; exit 0 ;;
    --out) out=$2; shift 2 ;;
    --no-torch) torch=OFF; shift ;;
    --without-ort) ort=; shift ;;
    *) echo "package.sh: unknown argument $1; see --help" >&2; exit 2 ;;
  esac
done

tools/setup.sh --build
needed=
for program in patchelf:patchelf dpkg-shlibdeps:dpkg-dev fakeroot:fakeroot; do
  command -v "${program%%:*}" >/dev/null 2>&1 || needed="$needed ${program##*:}"
done
# shellcheck disable=SC2086  # words
[ -z "$needed" ] || apt-get install -y -qq $needed
[ -z "$ort" ] || tools/ort/install.sh

SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
export SOURCE_DATE_EPOCH
umask 022
version=$(sed -n 's/^  VERSION \([0-9.]*\)$/\1/p' CMakeLists.txt)
build=build/package-$torch
flags="-ffile-prefix-map=$PWD=. -DNDEBUG"
cmake -G Ninja -B "$build" -DCMAKE_BUILD_TYPE=Release -DPARSIMONY_TESTS=OFF -DPARSIMONY_UNITY=ON \
  -DPARSIMONY_TORCH="$torch" -DCMAKE_INSTALL_PREFIX=/usr -DCMAKE_CXX_FLAGS="$flags" \
  -DCPACK_PACKAGE_CONTACT="$(git log -1 --format='%an <%ae>')" >/dev/null
cmake --build "$build" -- --quiet
mkdir -p "$out"
out=$(cd "$out" && pwd)

# Debian packages ---------------------------------------------------------------------------------

rm -f "$out"/*.deb
(cd "$build" && cpack -G DEB -B "$out/cpack" >/dev/null 2>&1)
mv "$out"/cpack/*.deb "$out"
rm -rf "$out/cpack"

# The archive -------------------------------------------------------------------------------------

name=parsimony-$version-$(uname -m)
stage=$build/stage/$name
rm -rf "$build/stage"
cmake --install "$build" --component command --prefix "$PWD/$stage" --strip >/dev/null
# Debian's multiarch folder is the installation's; the archive has one.
inside=$stage/lib/parsimony
found=$(find "$stage" -name networks.zip)
[ "$(dirname "$found")" = "$inside" ] || { mkdir -p "$inside"; mv "$found" "$inside"; }
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
  modules=${XDG_CACHE_HOME:-$HOME/.cache}/parsimony/ort/node_modules/onnxruntime-node
  processor=$(uname -m | sed "s/x86_64/x64/; s/aarch64/arm64/")
  library=$(find "$modules/bin" -path "*/linux/$processor/*" -name "libonnxruntime.so*" | head -n 1)
  install -m 644 "$library" "$inside/libonnxruntime.so.1"
  cp "$modules/../onnxruntime-common/LICENSE" "$licences/onnxruntime" 2>/dev/null ||
    printf 'MIT License, Copyright (c) Microsoft Corporation\n' >"$licences/onnxruntime"
  printf ',\n    {"SPDXID": "SPDXRef-onnxruntime", "name": "onnxruntime", "packageFileName": "libonnxruntime.so.1", "versionInfo": "%s", "licenseConcluded": "MIT", "downloadLocation": "NOASSERTION"}' \
    "$(sed -n 's/^  "version": "\(.*\)",$/\1/p' "$modules/package.json")" >>"$bom"
fi
printf '\n  ]\n}\n' >>"$bom"
patchelf --set-rpath "\$ORIGIN/../lib/parsimony" "$stage/bin/parsimony"
tar -C "$build/stage" --sort=name --mtime="@$SOURCE_DATE_EPOCH" --owner=0 --group=0 --numeric-owner \
  -cf - "$name" | gzip -9n >"$out/$name.tar.gz"

ls -l "$out"
