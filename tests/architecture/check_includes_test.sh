#!/bin/sh
# The include check must find what it is there to find: each line below is one violation.
set -eu
tools=$(cd "$(dirname "$0")/../../tools" && pwd)
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
failures=0

# expect WANTED FILE LINE: WANTED is "fine" or a part of the complaint.
expect() {
  rm -rf "${tree:?}"/*
  mkdir -p "$tree/$(dirname "$2")"
  echo "$3" >"$tree/$2"
  found=$("$tools/check_includes.sh" "$tree" 2>&1) && found=fine
  case "$found" in
    *"$1"*) ;;
    *)
      echo "$2: $3: wanted \"$1\", found \"$found\""
      failures=$((failures + 1))
      ;;
  esac
}

expect fine graph/a.cc '#include "parsimony/graph/graph.h"'
expect fine pruners/criteria/a.cc '#include "parsimony/masks/coupling.h"'
expect fine onnx_io/a.cc '#include <onnx/onnx_pb.h>'
expect fine onnx_io/a_impl.h '#include <onnx/onnx_pb.h>'
expect fine onnx_io/a.cc '#include <sys/mman.h>'
expect fine configs/a.cc '#include <re2/re2.h>'
expect fine graph/a.h '#include <vector>'
expect fine cli/torch/a.cc '#include "parsimony/cli/torch_component.h"'
expect fine cli/torch/a.cc '#include "parsimony/cli/torch/jobs.h"'
expect fine cli/torch/a.cc '#include "parsimony/torch_io/prove.h"'
expect fine cli/torch/a.cc '#include <c10/util/Exception.h>'
expect 'graph/ may not include masks/' graph/a.cc '#include "parsimony/masks/coupling.h"'
expect 'masks/ may not include pruners/' masks/a.h '#include "parsimony/pruners/settings.h"'
expect 'onnx_io/ may not include report/' onnx_io/a.cc '#include "parsimony/report/text.h"'
expect 'graph/ may not include cli/' graph/operators/a.cc '  #  include "parsimony/cli/main.h"'
expect 'cli/ may not include cli/torch/' cli/a.cc '#include "parsimony/cli/torch/jobs.h"'
expect 'cli/ may not include torch_io/' cli/a.cc '#include "parsimony/torch_io/prove.h"'
expect 'cli/ may not include training/' cli/a.cc '#include "parsimony/training/recover.h"'
expect 'cli/ may not use ATen' cli/a.cc '#include <ATen/ATen.h>'
expect 'engines/ may not include pruners/' engines/machine/a.cc '#include "parsimony/pruners/settings.h"'
expect 'base/ may not include graph/' base/a.cc '#include "parsimony/graph/graph.h"'
expect 'graph/ may not use onnx' graph/a.cc '#include <onnx/onnx_pb.h>'
expect 'pruners/ may not use nlohmann' pruners/a.cc '#include <nlohmann/json.hpp>'
expect 'masks/ may not use torch' masks/a.cc '#include <torch/torch.h>'
expect 'third-party code in a public header' graph/a.h '#include <Eigen/Core>'
expect 'third-party code in a public header' onnx_io/a.h '#include <onnx/onnx_pb.h>'
expect 'a private header of another room' masks/a.cc '#include "parsimony/graph/a_impl.h"'
expect 'a private header in a public one' graph/a.h '#include "parsimony/graph/a_impl.h"'
expect 'write "parsimony/ROOM/FILE"' graph/a.cc '#include "graph.h"'
expect 'write "parsimony/ROOM/FILE"' graph/operators/a.cc '#include "../graph.h"'

[ "$failures" -eq 0 ]
