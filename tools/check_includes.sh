#!/bin/sh
# Holds the includes to the architecture, cmake/rooms.txt: rooms use only the rooms that their row
# names, third-party code is known where it belongs, public headers show only what they may, private
# ones stay at home.
#
#   tools/check_includes.sh [ROOT]     prints each violation; exit code 1 if there is one
set -eu
table=$(cd "$(dirname "$0")/../cmake" && pwd)/rooms.txt
root="${1:-$(dirname "$0")/..}"
cd "$root"

existing=
for room in $(sed -n '/^[a-z]/s/ .*//p' "$table"); do
  case "$room" in */*) continue ;; esac  # lies in a room that is listed
  [ ! -d "$room" ] || existing="$existing $room"
done

find $existing \( -name '*.h' -o -name '*.cc' \) -type f | sort | xargs -r awk -v table="$table" '
  BEGIN {
    FS = "|"
    while ((getline <table) > 0)
      if ($0 ~ /^[a-z]/) add_room($1, $3, $4, $5)
    split("sys linux netinet arpa bits", names, " ")  # folders of the operating system
    for (i in names) system_folder[names[i]] = 1
  }

  function add_room(room, below, used, shown,    names, i) {
    gsub(/ /, "", room)
    is_room[room] = 1
    may_include[room, room] = 1
    split(below, names, " ")
    for (i in names) may_include[room, names[i]] = 1
    split(used, names, " ")
    for (i in names) may_use[room, names[i]] = 1
    split(shown " absl", names, " ")
    for (i in names) may_use[room, names[i]] = may_show[room, names[i]] = 1
  }

  # A room may lie in another one: its name is then the first two folders.
  function room_of(first, second) {
    return ((first "/" second) in is_room) ? first "/" second : first
  }

  function violation(why) {
    printf "%s:%d: %s: %s\n", FILENAME, FNR, $0, why
    bad = 1
  }

  FNR == 1 { split(FILENAME, at, "/"); room = room_of(at[1], at[2]) }

  /^[ \t]*#[ \t]*include[ \t]*"/ {
    split($0, quoted, "\"")
    depth = split(quoted[2], part, "/")
    other = room_of(part[2], part[3])
    if (part[1] != "parsimony" || depth < 3)
      violation("write \"parsimony/ROOM/FILE\"")
    else if (!((room, other) in may_include))
      violation(room "/ may not include " other "/")
    else if (other != room && part[depth] ~ /_impl\.h$/)
      violation("a private header of another room")
    else if (part[depth] ~ /_impl\.h$/ && FILENAME ~ /\.h$/ && FILENAME !~ /_impl\.h$/)
      violation("a private header in a public one")
  }

  /^[ \t]*#[ \t]*include[ \t]*</ {
    split($0, angled, /[<>]/)
    if (split(angled[2], part, "/") < 2 || part[1] in system_folder) next
    if (!((room, part[1]) in may_use))
      violation(room "/ may not use " part[1])
    else if (FILENAME ~ /\.h$/ && FILENAME !~ /_impl\.h$/ && !((room, part[1]) in may_show))
      violation("third-party code in a public header")
  }

  END { exit bad }
'
