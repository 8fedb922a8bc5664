#!/bin/sh
# Draws docs/images/report.png: the headline, accuracy, channels and proof of a report, without what
# depends on how busy the machine was.
#
#   parsimony sweep --demo && tools/report_figure.sh parsimony-demo/report.html docs/images/report.png
set -eu
[ $# -eq 2 ] || { sed -n '2,5s/^# \{0,1\}//p' "$0"; exit 2; }
page=$(mktemp --suffix .html)
trap 'rm -f "$page"' EXIT
style='.cards li:nth-child(4), .cards li:nth-child(5), .figures > :not(.accuracy), details, #charts-title, #network-title,
section:has(> #settings-title), section:has(> #again-title), [aria-labelledby=network-title] > .because, .verdict ~ * {
display: none !important } main { display: grid; grid-template-columns: 1fr 1fr; column-gap: 16px }
main > :first-child { grid-column: 1 / 3 } .cards { grid-template-columns: repeat(4, 1fr) !important }
.figures { grid-template-columns: 1fr !important } section { margin-top: 12px !important } body { margin-top: -1rem }'
sed "s|</head>|<style>$(echo "$style" | tr '\n' ' ')</style></head>|" "$1" > "$page"
chromium --headless --no-sandbox --disable-gpu --hide-scrollbars --virtual-time-budget=8000 \
  --window-size=1000,880 --screenshot="$2" "file://$page" 2>/dev/null
