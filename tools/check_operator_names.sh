#!/bin/sh
# Holds what is known of operators in their rows: only the operator table and what stands with it,
# the front ends and the executor name operators; all others ask the row.
#
#   tools/check_operator_names.sh [ROOT]     prints each violation as file:line; exit code 1 if there
#                                            is one
#
# A violation is a string literal that is the name of an operator, as the table has it, or a
# comparison of a node's `op`.
set -eu
root="${1:-$(dirname "$0")/..}"
cd "$root"

# Folders that name operators: the rows, what reads operators from files or writes them, what runs them.
named_in='^(graph/operators|onnx_io|programs|torch_io/(script|live|export|executor)|tests|bench|examples|tools|build)/'

# Files besides those, each with its reason:
#   training/net/training_norms.cc         makes BatchNormalization nodes
#   training/statistics/gradients.cc       makes Mul nodes
#   api/recovery/row_sums.cc, recurrence.cc  make networks of sums
allowed='^(api/recovery/row_sums|api/recovery/recurrence|training/net/training_norms|training/statistics/gradients)\.cc:'

names=$(sed -n 's/.*{\.op = "\([A-Za-z0-9]*\)".*/\1/p' graph/operators/table.cc | sort -u | paste -sd'|' -)
[ -n "$names" ] || { echo "graph/operators/table.cc: no operator found"; exit 1; }
op='(\.|->)op'
pattern="\"($names)\"|$op *(==|!=)|(==|!=) *[][a-zA-Z_.()>-]*$op\\b|$op\.(starts_with|ends_with|find|compare)\\("

# Comments name what they like.
find . \( -name '*.cc' -o -name '*.h' \) -type f | sed 's|^\./||' | grep -Ev "$named_in" | sort |
  xargs grep -HnE "$pattern" | sed 's|//.*||' | grep -E "^[^:]*:[0-9]*:.*($pattern)" | grep -Ev "$allowed" |
  sed 's|^\([^:]*:[0-9]*\): *|\1: names an operator; ask its row in graph/operators/table.cc: |' |
  { ! grep .; }
