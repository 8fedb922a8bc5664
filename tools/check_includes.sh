#!/bin/sh
# Holds the includes to the architecture: rooms use only the rooms below them, third-party code is
# known where it belongs, public headers show none of it, private ones stay at home.
#
#   tools/check_includes.sh [ROOT]     prints each violation; exit code 1 if there is one
set -eu
root="${1:-$(dirname "$0")/..}"
cd "$root"

rooms="graph machine masks pruners speedup configs runtime api onnx_io torch_io training report cli component"
existing=
for room in $rooms; do
  [ ! -d "$room" ] || existing="$existing $room"
done

find $existing \( -name '*.h' -o -name '*.cc' \) -type f | sort | xargs -r awk '
  BEGIN {
    # room: the rooms it may include besides itself | the third-party code it may include
    allow("graph",    "",                                         "Eigen openssl")
    allow("machine",  "graph",                                    "")
    allow("masks",    "graph",                                    "Eigen nlohmann")
    allow("pruners",  "graph masks",                              "Eigen")
    allow("speedup",  "graph masks",                              "Eigen nlohmann")
    allow("configs",  "graph masks pruners",                      "nlohmann re2")
    allow("runtime",  "graph speedup",                               "Eigen")
    allow("api",      "graph masks pruners speedup configs runtime", "Eigen")
    allow("onnx_io",  "graph runtime",                            "onnx google")
    allow("torch_io", "graph machine masks pruners speedup configs runtime api onnx_io",  "torch ATen c10 caffe2")
    allow("report",   "graph machine masks speedup",              "nlohmann")
    allow("training", "graph machine masks pruners speedup configs runtime api onnx_io torch_io report",
          "torch ATen c10")
    allow("cli",      "graph machine masks pruners speedup configs runtime api onnx_io torch_io training report",
                      "CLI nlohmann")
    allow("component", "graph machine masks pruners speedup configs runtime api onnx_io torch_io training report cli examples",
                      "torch ATen c10")
    split("absl Eigen torch ATen c10", names, " ")
    for (i in names) may_show[names[i]] = 1
    split("sys linux netinet arpa bits", names, " ")  # folders of the operating system
    for (i in names) system_folder[names[i]] = 1
  }

  function allow(room, below, packages,    names, i) {
    may_include[room, room] = 1
    may_use[room, "absl"] = 1  # containers
    split(below, names, " ")
    for (i in names) may_include[room, names[i]] = 1
    split(packages, names, " ")
    for (i in names) may_use[room, names[i]] = 1
  }

  function violation(why) {
    printf "%s:%d: %s: %s\n", FILENAME, FNR, $0, why
    bad = 1
  }

  FNR == 1 { split(FILENAME, at, "/"); room = at[1] }

  /^[ \t]*#[ \t]*include[ \t]*"/ {
    split($0, quoted, "\"")
    depth = split(quoted[2], part, "/")
    if (part[1] != "parsimony" || depth < 3)
      violation("write \"parsimony/ROOM/FILE\"")
    else if (!((room, part[2]) in may_include))
      violation(room "/ may not include " part[2] "/")
    else if (part[2] != room && part[depth] ~ /_impl\.h$/)
      violation("a private header of another room")
    else if (part[depth] ~ /_impl\.h$/ && FILENAME ~ /\.h$/ && FILENAME !~ /_impl\.h$/)
      violation("a private header in a public one")
  }

  /^[ \t]*#[ \t]*include[ \t]*</ {
    split($0, angled, /[<>]/)
    if (split(angled[2], part, "/") < 2 || part[1] in system_folder) next
    if (!((room, part[1]) in may_use))
      violation(room "/ may not use " part[1])
    else if (FILENAME ~ /\.h$/ && FILENAME !~ /_impl\.h$/ && room != "cli" && !(part[1] in may_show))
      violation("third-party code in a public header")
  }

  END { exit bad }
'
