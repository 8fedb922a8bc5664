#!/bin/sh
# Prunes a trained network end to end: a small CNN for MNIST loses half of every layer's channels.
# Prints the report, the accuracy before and after, and the proof by ONNX Runtime. Then trains and
# prunes a CNN at five sparsities and writes a report to look at.
#
#   tools/demo.sh [RATIO]     share of channels to remove (default 0.5)
set -eu
cd "$(dirname "$0")/.."
ratio="${1:-0.5}"

tools/setup.sh
cmake --preset release -DPARSIMONY_TESTS=OFF -DPARSIMONY_BENCH=OFF -B build/demo >/dev/null
cmake --build build/demo --parallel 2 -- --quiet

model=examples/models/mnist_cnn.onnx
images=examples/models/mnist_test_images.idx3.gz
labels=examples/models/mnist_test_labels.idx1.gz
out=build/demo/out
mkdir -p "$out"

say() {
  printf '\n$ %s\n\n' "$*"
  "$@"
}

say build/demo/bin/parsimony prune "$model" -o "$out/small.onnx" --criterion l1 --ratio "$ratio" \
  --plan "$out/plan.json" --report "$out/report.json"

printf '\nAccuracy on %s: %s' "$(basename "$images")" "$(tools/ort_accuracy.py "$model" "$images" "$labels" --scale 1/255)"
printf ' -> %s, without any fine-tuning\n' \
  "$(tools/ort_accuracy.py "$out/small.onnx" "$images" "$labels" --scale 1/255)"

say build/demo/bin/parsimony verify "$model" "$out/small.onnx" --plan "$out/plan.json" --engine onnxruntime
say build/demo/bin/parsimony sweep --demo --out "$out/sweep"

printf '\nThe sweep: open %s/sweep/report.html.' "$out"
printf '\nThe small model, its plan and the report are in %s.\n' "$out"
