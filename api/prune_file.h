// What `parsimony prune` does, in one call.
#pragma once

#include <string>

#include "parsimony/api/prune_model.h"

namespace parsimony {

/// Reads a model (ONNX, TorchScript or .pt2), prunes it, proves the result and writes it to
/// `output`, which may be the model itself. The plan in the result identifies its source: save it,
/// and `apply_plan` reproduces the result.
///
/// Proofs, TorchScript and everything that runs data need the libtorch component that comes with
/// `parsimony`; it is loaded if available. Without it an ONNX file is still pruned, and
/// `proof.not_run` says why there is no proof.
///
///     auto result = parsimony::prune_file("resnet.onnx", "small.onnx", {.ratio = 0.5});
///     result.pruning.plan.save("small.plan.json");
///
/// @throws VerificationError naming the group, without writing anything; ConfigError, IoError,
/// ModelError, UnsupportedError
PruneResult prune_file(const std::string& input, const std::string& output,
                       const ConfigList& config, const PruneOptions& options = {});

/// The same with the command line's shorthand: one ratio, one criterion.
inline PruneResult prune_file(const std::string& input, const std::string& output,
                              const Shorthand& what, const PruneOptions& options = {}) {
  return prune_file(input, output, from_shorthand(what), options);
}

}  // namespace parsimony
