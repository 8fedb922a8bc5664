#!/bin/sh
# Prunes the networks of tools/architectures by half with Parsimony and with every other tool that a
# Python here has, and writes docs/results/data/rivals.json and its page; others' figures stand in
# tools/rivals/quoted.json, each with source and date.
#
#   tools/rivals.sh [OPTION...] [NAME...]     all networks, or these
#
#   --folder FOLDER          where networks and results lie
#   --python PROGRAM         a Python with PyTorch 2.6 or newer; may be several words, such as a chroot of
#                            Debian 13 with python3-torch that has this tree and FOLDER at the same paths
#                            (python3). It writes the .pt2 files and has torch.ao.pruning
#   --torch-pruning PROGRAM  one that imports torch_pruning, too (pip install torch-pruning); without this
#                            option --python is asked
#   --onnxsim PROGRAM        one that imports onnx and onnxsim, with onnxsim.apply_structured_pruning
#   --onnx-python PROGRAM    for --onnxsim: one whose torch exports ONNX (/usr/bin/python3, Debian's)
#   --command PATH           build/release/bin/parsimony
#   --again                  measures again what has been measured
#   --no-page                leaves docs/results as it is
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)

folder="${PARSIMONY_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/parsimony}/rivals"
case ${1:-} in
  -h | --help) sed -n '2,21s/^# \{0,1\}//p' "$0"; exit 0 ;;
esac
exec node "$root/tools/rivals/main.mjs" --folder "$folder" "$@"
