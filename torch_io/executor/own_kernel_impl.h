// Kernels of the user's own: operators that have none here, run by ONNX Runtime one node at a time.
#pragma once

#include <optional>

#include "parsimony/torch_io/executor/operators_impl.h"

namespace parsimony::executor {

/// For every operator without a kernel of ours; null if no library of kernels was added.
const Operator* own_operator();

/// Runs the node on all elements of its operands. @throws UnsupportedError if ONNX Runtime refuses,
/// or a gradient is wanted
Tensors run_own_kernel(const Call& call);

/// Presence of the results: absent is what depends on absent elements alone. A kernel that mixes
/// channels though its rule does not say so computes with zeros in place of the absent ones; then
/// the comparison of outputs refutes the rule.
Tensors found_by_trial(const Call& call, const Tensors& outputs);

/// Results of the original's shape, with zeros where they are absent.
struct SmallRun {
  Tensors results;
  Tensors present;
};

/// Runs a kernel that mixes channels on operands without the absent ones. Empty if nothing is
/// absent; if that is not by whole channels; or unless results follow a permutation of the channels
/// of all operands, which shows what belongs to which.
std::optional<SmallRun> run_without_absent(const Call& call);

}  // namespace parsimony::executor
