// Pruning a model file in one call, as `parsimony prune` does.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

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
///     result.plan.save("small.plan.json");
///
/// @throws VerificationError naming the group, without writing anything; ConfigError, IoError,
/// ModelError, UnsupportedError
PruneResult prune_file(const std::string& input, const std::string& output,
                       const PruneRequest& request, const PruneServices& services = {});

/// Describes every exceeded budget of the file's bytes. A plan can count weights and what was
/// beside them, but not the bytes that alignment and the names of copies will take.
std::vector<std::string> above_file_budget(const ConfigList& config, int64_t before, int64_t after);

/// Prunes a file as above, configured by the command line's shorthand: one ratio, one criterion.
inline PruneResult prune_file(const std::string& input, const std::string& output,
                              const Shorthand& what) {
  return prune_file(input, output, from_shorthand(what));
}

}  // namespace parsimony
