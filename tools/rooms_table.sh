#!/bin/sh
# The tables of rooms in CONTRIBUTING.md, made from cmake/rooms.txt.
#
#   tools/rooms_table.sh [--check]     exit code 1 if CONTRIBUTING.md says something else
#   tools/rooms_table.sh --write       writes it there
set -eu
cd "$(dirname "$0")/.."

table() {
  awk -F ' *[|] *' '
    /^## / {
      printf "%s**%s**\n\n", headed ? "\n" : "", substr($0, 4)
      print "| room | what it owns | may include | third party |"
      print "|---|---|---|---|"
      headed = 1
    }
    /^[a-z]/ {
      below = all != "" && $3 == all ? "all above" : $3
      third = $4 ($4 != "" && $5 != "" ? " " : "") $5
      printf "| `%s/` | %s | %s | %s |\n", $1, $2, below == "" ? "–" : below, third == "" ? "–" : third
      all = all (all == "" ? "" : " ") $1
    }' cmake/rooms.txt
}

# CONTRIBUTING.md with the table as it should be.
contributing() {
  table >"$made/table"
  awk -v table="$made/table" '
    /^<!-- rooms: end/ { inside = 0 }
    !inside { print }
    /^<!-- rooms: begin/ { inside = 1; while ((getline line <table) > 0) print line }
  ' CONTRIBUTING.md
}

made=$(mktemp -d)
trap 'rm -rf "$made"' EXIT
contributing >"$made/CONTRIBUTING.md"
case "${1:---check}" in
  --check) diff -u CONTRIBUTING.md "$made/CONTRIBUTING.md" || {
    echo "The table of rooms is stale: tools/rooms_table.sh --write" >&2
    exit 1
  } ;;
  --write) cat "$made/CONTRIBUTING.md" >CONTRIBUTING.md ;;
  *) sed -n '2,5s/^# \{0,1\}//p' "$0" >&2; exit 2 ;;
esac
