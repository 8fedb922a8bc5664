// What `parsimony prune` does, in one call.
#pragma once

#include <string>

#include "parsimony/api/prune_model.h"

namespace parsimony {

/// Reads a model, ONNX or TorchScript, makes it smaller, proves it and writes it to `output`, which
/// may be the model itself. The plan in the result says which file it is of: save it, and
/// `apply_plan` makes the same again.
///
/// Proofs, TorchScript and all that runs data need the libtorch component that `parsimony` comes
/// with; it is loaded where it is found. Without it an ONNX file is pruned all the same, and
/// `proof.not_run` says why there is no proof.
///
///     auto result = parsimony::prune_file("resnet.onnx", "small.onnx", {.ratio = 0.5});
///     result.pruning.plan.save("small.plan.json");
///
/// @throws VerificationError naming the group, and nothing is written; ConfigError, IoError,
/// ModelError, UnsupportedError
PruneResult prune_file(const std::string& input, const std::string& output,
                       const ConfigList& config, const PruneOptions& options = {});

/// The same as the command line says it: one ratio, one criterion.
inline PruneResult prune_file(const std::string& input, const std::string& output,
                              const Shorthand& what, const PruneOptions& options = {}) {
  return prune_file(input, output, from_shorthand(what), options);
}

}  // namespace parsimony
