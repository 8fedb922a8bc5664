#!/bin/sh
# Draws docs/images/network.png: the picture of a network, with one of its groups.
#
#   tools/network_figure.sh PARSIMONY MODEL GROUP docs/images/network.png
set -eu
[ $# -eq 4 ] || { sed -n '2,4s/^# \{0,1\}//p' "$0"; exit 2; }
page=$(mktemp --suffix .html)
trap 'rm -f "$page"' EXIT
"$1" -q explain "$2" --html "$page" --ratio 0.5 >/dev/null
chromium --headless --no-sandbox --disable-gpu --hide-scrollbars --virtual-time-budget=4000 \
  --window-size=1280,800 --screenshot="$4" "file://$page#$3" 2>/dev/null
