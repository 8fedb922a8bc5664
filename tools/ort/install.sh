#!/bin/sh
# Installs the oracle's one dependency, ONNX Runtime, into a cache outside the source tree.
# Does nothing where the cache already holds what package-lock.json asks for.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
target="${PARSIMONY_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/parsimony}/ort"

# The copied lock file is the stamp: it is moved into place together with what it describes.
if cmp -s "$here/package-lock.json" "$target/package-lock.json"; then
  exit 0
fi

command -v npm >/dev/null || { echo "install.sh: npm is not installed" >&2; exit 4; }

mkdir -p "$(dirname "$target")"
fresh=$(mktemp -d "$target.XXXXXX")
trap 'rm -rf "$fresh"' EXIT
cp "$here/package.json" "$here/package-lock.json" "$fresh"

# Its post-install script only downloads GPU libraries; the CPU ones are in the package.
(cd "$fresh" && npm ci --ignore-scripts --no-audit --no-fund --loglevel=error >&2)

# The package carries every platform's library; the others would be four fifths of the cache.
platform=$(node -p 'process.platform + "/" + process.arch')
for found in "$fresh"/node_modules/onnxruntime-node/bin/napi-v*/*/*; do
  case "$found" in
    */"$platform") ;;
    *) rm -rf "$found" ;;
  esac
done

# -T, because beside another install that has just finished a plain mv would nest one in the other.
rm -rf "$target"
mv -T "$fresh" "$target" 2>/dev/null || cmp -s "$here/package-lock.json" "$target/package-lock.json"
chmod 755 "$target"
echo "ONNX Runtime is in $target" >&2
