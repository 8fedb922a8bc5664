#!/bin/sh
# ONNX Runtime's package carries every platform's library; the others would be four fifths of the
# cache.
set -eu

platform=$(node -p 'process.platform + "/" + process.arch')
for found in "$1"/node_modules/onnxruntime-node/bin/napi-v*/*/*; do
  case "$found" in
    */"$platform") ;;
    *) rm -rf "$found" ;;
  esac
done
