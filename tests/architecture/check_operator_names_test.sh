#!/bin/sh
# The check of operator names must find what it is there to find.
set -eu
tools=$(cd "$(dirname "$0")/../../tools" && pwd)
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
failures=0
mkdir -p "$tree/graph/operators"
echo '    {.op = "Conv", .line = kLine},' >"$tree/graph/operators/table.cc"

# expect WANTED FILE LINE: WANTED is "fine" or a part of the complaint.
expect() {
  mkdir -p "$tree/$(dirname "$2")"
  echo "$3" >"$tree/$2"
  found=$("$tools/check_operator_names.sh" "$tree" 2>&1) && found=fine
  rm "$tree/$2"
  case "$found" in
    *"$1"*) ;;
    *)
      echo "$2: $3: wanted \"$1\", found \"$found\""
      failures=$((failures + 1))
      ;;
  esac
}

expect 'masks/a.cc:1: names an operator' masks/a.cc 'if (node.op == kind) return;'
expect 'pruners/x/a.h:1: names an operator' pruners/x/a.h 'constexpr auto kLayers = {"Conv", "x"};'
expect 'speedup/a.cc:1: names an operator' speedup/a.cc 'node->op.starts_with("Reduce")'
expect 'api/a.cc:1: names an operator' api/a.cc 'return kind != node.op;'
expect fine masks/a.cc '// "Conv" is a layer'
expect fine masks/a.cc 'text += node.op;'
expect fine masks/a.cc 'errors::not_a_layer(place, name, node->op)'
expect fine masks/a.cc 'puts("Convolution");'
expect fine onnx_io/a.cc 'if (node.op == "Conv") return;'
expect fine graph/operators/spatial.cc 'if (node.op == "Conv") return;'
expect fine torch_io/executor/a.cc '{"Conv", conv},'

[ "$failures" -eq 0 ]
