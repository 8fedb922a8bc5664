#!/bin/sh
# Writes the chart library as one script: Vega, Vega-Lite and vega-embed, and their licences.
#
#   tools/report/bundle.sh FILE
set -eu

here=$(cd "$(dirname "$0")" && pwd)
[ $# -eq 1 ] || { echo "usage: tools/report/bundle.sh FILE" >&2; exit 2; }

"$here/install.sh"
modules="${PARSIMONY_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/parsimony}/charts/node_modules"

mkdir -p "$(dirname "$1")"
fresh="$1.tmp$$"
trap 'rm -f "$fresh"' EXIT
{
  # What the scripts were made of; packages that share a text are named together.
  echo '/*! This file contains the packages named here, under these terms.'
  for licence in "$modules"/vega*/LICENSE* "$modules"/d3-*/LICENSE* "$modules"/delaunator/LICENSE* \
    "$modules"/internmap/LICENSE* "$modules"/robust-predicates/LICENSE* \
    "$modules"/topojson-client/LICENSE* "$modules"/fast-json-patch/LICENSE* \
    "$modules"/json-stringify-pretty-compact/LICENSE* "$modules"/semver/LICENSE* \
    "$modules"/tslib/LICENSE*; do
    [ -e "$licence" ] || continue
    package=${licence%/*}
    printf '%s %s\n' "$(cksum <"$licence" | tr ' ' '-')" "${package##*/} $licence"
  done | LC_ALL=C sort | awk '
    function show(  line) {
      print "\n" names ":\n"
      while ((getline line < file) > 0) { gsub(/\r/, "", line); gsub(/\*\//, "* /", line); print line }
      close(file)
    }
    $1 != sum { if (sum != "") show(); names = ""; sum = $1; file = $3 }
    { names = names (names == "" ? "" : ", ") $2 }
    END { if (sum != "") show() }'
  echo '*/'
  for script in vega/build/vega.min.js vega-lite/build/vega-lite.min.js \
    vega-embed/build/vega-embed.min.js; do
    sed '/^\/\/# sourceMappingURL=/d' "$modules/$script"
    echo
  done
} >"$fresh"

# Within a page either would end the script early.
if grep -qi -e '</script' -e '<!--' "$fresh"; then
  echo "bundle.sh: the scripts hold what ends a script in HTML" >&2
  exit 1
fi
cmp -s "$fresh" "$1" || mv "$fresh" "$1"
