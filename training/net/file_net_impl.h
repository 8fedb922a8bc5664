// The two kinds of file, and what pruning them has in common.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "parsimony/api/prune.h"
#include "parsimony/torch_io/prove.h"
#include "parsimony/training/net/file_net.h"
#include "parsimony/training/net/net.h"

namespace parsimony::training {

std::unique_ptr<Net> onnx_net(const std::string& path, const FileNetOptions& options);
std::unique_ptr<Net> script_net(const std::string& path);

/// Why the network failed on `x`, when it is because it takes one sample only. `run` is tried on
/// one and on two. @throws UnsupportedError, or nothing
void blame_batch(const std::string& path, const at::Tensor& x, const std::string& why,
                 const std::function<void(const at::Tensor&)>& run);

/// How one network in a file is pruned.
struct Cutting {
  Graph& graph;
  std::vector<InputSpec> inputs;  ///< what the graph leaves open
  /// The original with the plan's channels absent.
  std::function<torch_io::Computation(const Plan&)> masked;
  /// Makes the small network beside the original, and says how it is run.
  std::function<torch_io::Computation(const Pruning&)> edit;
  /// The original once more, for `graph` may be gone behind `edit`.
  std::function<Graph()> again;
};

/// Plans, edits and proves. @throws VerificationError naming the group, ConfigError, ModelError,
/// UnsupportedError
Cut carry_out(const Cutting& cutting, const ConfigList& config, const CutOptions& options);

/// The plan without what it says of values: those are filled in behind it.
Plan shapes_of(const Plan& plan);

}  // namespace parsimony::training
