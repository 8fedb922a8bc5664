#!/bin/sh
# Makes packages from this tree: Debian packages (parsimony, parsimony-onnxruntime, libparsimony-dev), a Python
# wheel of the command, and an archive of the same with ONNX Runtime.
#
#   tools/package.sh [--out DIR] [--build DIR] [--torch] [--without-ort] [--arch ARCH] [--twice]
#
#   --out DIR      where they go (build/packages)
#   --build DIR    where they are compiled (build/package-OFF; build/package-ON with libtorch,
#                  build/package-ARCH for another processor)
#   --torch        with the distribution's libtorch: parsimony-torch, and its half of libparsimony-dev
#   --without-ort  without the library of ONNX Runtime in the archive and for Debian
#   --arch ARCH    the wheel for another processor, as Debian calls it (arm64), by a cross-compiler. It adds
#                  that architecture to the packages of this machine: have one to spare, or a chroot
#   --twice        compiles and makes everything again in DIR-again; 1 if a byte differs
#
# Archive and wheel run wherever the C library is at least as new as the wheel's name says; they have
# a bill of materials (SPDX) and the licences of what is inside. The same commit and the same
# versions of the distribution's packages give the same bytes.
set -eu
cd "$(dirname "$0")/.."

out=build/packages
build=
torch=OFF
ort=yes
arch=
twice=
while [ $# -gt 0 ]; do
  case "$1" in
    -h | --help) sed -n '2,20s/^# \{0,1\}//p' "$0"; exit 0 ;;
    --out) out=$2; shift 2 ;;
    --build) build=$2; shift 2 ;;
    --torch) torch=ON; shift ;;
    --without-ort) ort=; shift ;;
    --arch) arch=$2; shift 2 ;;
    --twice) twice=yes; shift ;;
    *) echo "package.sh: unknown argument $1; see --help" >&2; exit 2 ;;
  esac
done
[ "$arch" != "$(dpkg --print-architecture)" ] || arch=
[ -z "$arch" ] || { torch=OFF ort=; }
build=${build:-build/package-${arch:-$torch}}
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
  [ "$torch" = OFF ] || set -- --torch "$@"
  [ -n "$ort" ] || set -- --without-ort "$@"
  [ -z "$arch" ] || set -- --arch "$arch" "$@"
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

if [ "$torch" = ON ]; then
  libtorch=$(apt-cache show --no-all-versions libtorch-dev 2>/dev/null | sed -n 's/^Version: //p')
  dpkg --compare-versions "${libtorch:-0}" ge 2.6 || {
    echo "package.sh: --torch needs a distribution with libtorch 2.6 or later; this one has ${libtorch:-none}" >&2
    exit 4
  }
fi
if [ "$torch" = ON ]; then tools/setup.sh --build; else tools/setup.sh --core; fi
needed=
for program in patchelf:patchelf dpkg-shlibdeps:dpkg-dev fakeroot:fakeroot readelf:binutils file:file; do
  command -v "${program%%:*}" >/dev/null 2>&1 || needed="$needed ${program##*:}"
done
if [ -n "$arch" ]; then
  dpkg --print-foreign-architectures | grep -qx "$arch" || {
    dpkg --add-architecture "$arch"
    apt-get update -qq
  }
  for package in protobuf absl re2 ssl mimalloc jpeg62-turbo png sndfile1; do
    needed="$needed lib$package-dev:$arch"
  done
  needed="$needed zlib1g-dev:$arch crossbuild-essential-$arch"
fi
# shellcheck disable=SC2086  # words
[ -z "$needed" ] || apt-get install -y -qq --no-install-recommends $needed
if [ -n "$ort" ]; then
  environment=${PARSIMONY_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/parsimony}/python
  ort=$(find "$environment/lib" -path "*/onnxruntime/capi/*" -name "libonnxruntime.so*" | head -n 1)
  [ -n "$ort" ] || { echo "package.sh: there is no ONNX Runtime in $environment" >&2; exit 4; }
fi

SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
export SOURCE_DATE_EPOCH
umask 022
version=$(sed -n 's/^  VERSION \([0-9.]*\)$/\1/p' CMakeLists.txt)
triplet=$(dpkg-architecture ${arch:+-a "$arch"} -q DEB_HOST_MULTIARCH 2>/dev/null)
machine=${triplet%%-*}
# Of two that fit, the compiler takes the last.
flags="-ffile-prefix-map=$PWD=. -ffile-prefix-map=$build=./build -DNDEBUG"

# The headers of ONNX are those of this machine: a second libonnx-dev does not go beside the first.
configure() {
  [ -z "$arch" ] || set -- "$@" -DCMAKE_SYSTEM_NAME=Linux -DCMAKE_SYSTEM_PROCESSOR="$machine" \
    -DCMAKE_C_COMPILER="$triplet-gcc" -DCMAKE_CXX_COMPILER="$triplet-g++" \
    -DONNX_DIR="/usr/lib/$(dpkg-architecture -q DEB_BUILD_MULTIARCH)/cmake/ONNX"
  cmake -G Ninja -DCMAKE_BUILD_TYPE=Release -DCMAKE_CXX_FLAGS="$flags" "$@" >"$build/cmake.log" 2>&1 ||
    { cat "$build/cmake.log" >&2; exit 4; }
}
configure_ours() {
  configure -B "$build" -DPARSIMONY_TESTS=OFF -DPARSIMONY_UNITY=ON -DPARSIMONY_TORCH="$torch" \
    -DCMAKE_INSTALL_PREFIX=/usr -DPARSIMONY_ONNXRUNTIME_LIBRARY="$ort" \
    -DCPACK_PACKAGE_CONTACT="$(git log -1 --format='%an <%ae>')" "$@"
}

# Debian packages ---------------------------------------------------------------------------------

rm -f "$out"/parsimony_pruning-*"_$machine.whl"
if [ -z "$arch" ]; then
  rm -f "$out"/*.deb "$out"/parsimony-*.tar.gz
  configure_ours -DPARSIMONY_STATIC=OFF
  cmake --build "$build" -- --quiet
  (cd "$build" && cpack -G DEB -B "$build/cpack" >cpack.log 2>&1) || { cat "$build/cpack.log" >&2; exit 4; }
  mv "$build"/cpack/*.deb "$out"
  rm -rf "$build/cpack"
fi

# The command for other distributions -------------------------------------------------------------

# Debian has no static ONNX. PyPI has the sources of each version.
# shellcheck disable=SC2016  # the format is dpkg's
onnx=$(dpkg-query -W -f='${source:Upstream-Version}' "libonnx-dev:$(dpkg --print-architecture)")
onnx_source=$build/onnx/onnx-$onnx
onnx_build=$onnx_source/build
if [ ! -e "$onnx_build/libonnx.a" ]; then
  rm -rf "$build/onnx"
  /usr/bin/python3 -m pip download -q --no-deps --no-binary onnx --no-build-isolation -d "$build/onnx" "onnx==$onnx"
  tar -C "$build/onnx" -xzf "$onnx_source.tar.gz"
  configure -S "$onnx_source" -B "$onnx_build" -DCMAKE_POSITION_INDEPENDENT_CODE=ON \
    -DCMAKE_POLICY_VERSION_MINIMUM=3.5 -DCMAKE_CXX_COMPILER_LAUNCHER=ccache \
    -DONNX_ML=ON -DONNX_USE_PROTOBUF_SHARED_LIBS=OFF -DPYTHON_EXECUTABLE=/usr/bin/python3
  cmake --build "$onnx_build" --target onnx -- --quiet >"$build/onnx.log" 2>&1 ||
    { cat "$build/onnx.log" >&2; exit 4; }
fi

configure_ours -DPARSIMONY_STATIC=ON -DPARSIMONY_STATIC_FOLDER="$onnx_build"
cmake --build "$build" --target parsimony -- --quiet

name=parsimony-$version-$machine
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

bom=$stage/share/doc/parsimony/sbom.spdx.json
# part NAME VERSION LICENCE [MORE]: a row of the bill of materials.
part() {
  printf ',\n    {"SPDXID": "SPDXRef-%s", "name": "%s", "versionInfo": "%s", "licenseConcluded": "%s", %s"downloadLocation": "NOASSERTION"}' \
    "$1" "$1" "$2" "$3" "${4:-}" >>"$bom"
}
# The package of the distribution that the library $1 is from, and its licence.
part_of_package() {
  real=$(readlink -f "$1")
  place="*/$(basename "$(dirname "$real")")/$(basename "$real")"  # in /lib or /usr/lib
  package=$(dpkg-query -S "$place" 2>/dev/null | sed -n '1s/: .*//p')
  [ -n "$package" ] || { echo "package.sh: no package owns $1" >&2; exit 4; }
  licence=$licences/${package%:*}
  [ ! -e "$licence" ] || return 0
  cp "/usr/share/doc/${package%:*}/copyright" "$licence"
  # shellcheck disable=SC2016  # the format is dpkg's
  part "${package%:*}" "$(dpkg-query -W -f='${source:Version}' "$package")" NOASSERTION \
    '"supplier": "Organization: Debian", '
}
# The libraries that the file $1 names, and those that they name, but not those of the C library.
libraries() {
  for library in $(readelf -d "$1" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' |
      grep -Ev '^(libc|libm|libdl|libpthread|librt|ld-linux[^/]*)\.so\.[0-9]+$'); do
    echo "/usr/lib/$triplet/$library"
    libraries "/usr/lib/$triplet/$library"
  done
}

{
  printf '{\n  "spdxVersion": "SPDX-2.3",\n  "dataLicense": "CC0-1.0",\n  "SPDXID": "SPDXRef-DOCUMENT",\n'
  printf '  "name": "%s",\n  "documentNamespace": "urn:parsimony:%s:%s",\n' \
    "$name" "$name" "$(git rev-parse HEAD)"
  printf '  "creationInfo": {"created": "%s", "creators": ["Tool: tools/package.sh"]},\n' \
    "$(date -u -d "@$SOURCE_DATE_EPOCH" +%Y-%m-%dT%H:%M:%SZ)"
  printf '  "packages": [\n'
  printf '    {"SPDXID": "SPDXRef-parsimony", "name": "parsimony", "versionInfo": "%s", "licenseConcluded": "Apache-2.0", "downloadLocation": "NOASSERTION"}' "$version"
} >"$bom"
part onnx "$onnx" Apache-2.0 '"supplier": "Organization: ONNX", '
cp "$onnx_source/LICENSE" "$licences/onnx"
for library in $(ninja -C "$build" -t commands parsimony | tail -n 1 | tr ' ' '\n' | grep '^/usr/lib/.*\.a$') \
    "$("$triplet-g++" -print-file-name=libstdc++.a)"; do
  part_of_package "$library"
done
for library in $(libraries "$build/bin/parsimony" | sort -u); do
  install -m 644 "$library" "$inside"
  patchelf --set-rpath "\$ORIGIN" "$inside/$(basename "$library")"
  part_of_package "$library"
done
patchelf --set-rpath "\$ORIGIN/../lib/parsimony" "$stage/bin/parsimony"
printf '\n  ]\n}\n' >>"$bom"

# The wheel ---------------------------------------------------------------------------------------

# The newest symbol version of the C library that anything inside asks for.
glibc=$(find "$stage/bin" "$inside" -type f ! -name '*.zip' -exec readelf -V {} + |
  grep -o 'GLIBC_[0-9][0-9.]*' | sort -Vu | tail -n 1)
version_of_glibc=$(echo "${glibc#GLIBC_}" | tr . _)
/usr/bin/python3 python/build_wheel.py --prefix "$stage" --out "$out" \
  --platform "manylinux_${version_of_glibc}_$machine" >/dev/null

# The archive -------------------------------------------------------------------------------------

if [ -z "$arch" ]; then
  if [ -n "$ort" ]; then
    # The libstdc++ that it wants is the system's: the one of this distribution would ask for a newer C library.
    install -m 644 "$ort" "$inside/libonnxruntime.so.1"
    cp packaging/licences/onnxruntime "$licences"
    truncate -s -7 "$bom"  # the closing brackets
    part onnxruntime "${ort##*.so.}" MIT
    printf '\n  ]\n}\n' >>"$bom"
  fi
  tar -C "$build/stage" --sort=name --mtime="@$SOURCE_DATE_EPOCH" --owner=0 --group=0 --numeric-owner \
    -cf - "$name" | gzip -9n >"$out/$name.tar.gz"
fi

ls -l "$out"
