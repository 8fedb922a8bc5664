#!/bin/sh
# Installs what FOLDER/package-lock.json asks for into the cache, as NAME; does nothing where it is
# there.
#
#   tools/npm_cache.sh NAME FOLDER [npm option...]
set -eu

name=$1
here=$(cd "$2" && pwd)
shift 2
target="${PARSIMONY_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/parsimony}/$name"

# The copied lock file is the stamp: it is moved into place together with what it describes.
if cmp -s "$here/package-lock.json" "$target/package-lock.json"; then
  exit 0
fi

command -v npm >/dev/null || { echo "npm_cache.sh: npm is not installed" >&2; exit 4; }

mkdir -p "$(dirname "$target")"
fresh=$(mktemp -d "$target.XXXXXX")
trap 'rm -rf "$fresh"' EXIT
cp "$here/package.json" "$here/package-lock.json" "$fresh"
(cd "$fresh" && npm ci --ignore-scripts --no-audit --no-fund --loglevel=error "$@" >&2)

# -T, because beside another install that has just finished a plain mv would nest one in the other.
rm -rf "$target"
mv -T "$fresh" "$target" 2>/dev/null || cmp -s "$here/package-lock.json" "$target/package-lock.json"
chmod 755 "$target"
echo "$name: installed in $target" >&2
