#!/bin/sh
# Installs what drives the browser in the tests, into a cache outside the source tree.
# Does nothing where the cache already holds what package-lock.json asks for.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
target="${PARSIMONY_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/parsimony}/browser"

# The copied lock file is the stamp: it is moved into place together with what it describes.
if cmp -s "$here/package-lock.json" "$target/package-lock.json"; then
  exit 0
fi

command -v npm >/dev/null || { echo "install.sh: npm is not installed" >&2; exit 4; }

mkdir -p "$(dirname "$target")"
fresh=$(mktemp -d "$target.XXXXXX")
trap 'rm -rf "$fresh"' EXIT
cp "$here/package.json" "$here/package-lock.json" "$fresh"

# Without a network this is to fail at once, not after minutes.
(cd "$fresh" && npm ci --ignore-scripts --no-audit --no-fund --fetch-retries=0 \
  --loglevel=error >&2)

# -T, because beside another install that has just finished a plain mv would nest one in the other.
rm -rf "$target"
mv -T "$fresh" "$target" 2>/dev/null || cmp -s "$here/package-lock.json" "$target/package-lock.json"
chmod 755 "$target"
