// The two kinds of file, and what pruning them has in common.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "parsimony/engines/editable_model.h"
#include "parsimony/training/net/file_net.h"
#include "parsimony/training/net/net.h"

namespace parsimony::training {

std::unique_ptr<Net> onnx_net(const std::string& path, const FileNetOptions& options);
std::unique_ptr<Net> script_net(const std::string& path);

/// Why the network failed on `x`, when it is because it takes one sample only. `run` is tried on
/// one and on two. @throws UnsupportedError, or nothing
void blame_batch(const std::string& path, const at::Tensor& x, const std::string& why,
                 const std::function<void(const at::Tensor&)>& run);

/// What a run of pruning took and gave. @throws VerificationError naming the group, ConfigError,
/// ModelError, UnsupportedError
Cut carry_out(EditableModel& model, std::vector<InputSpec> inputs, const ConfigList& config,
              const PruneOptions& options);

/// The plan without what it says of values: those are filled in behind it.
Plan shapes_of(const Plan& plan);

}  // namespace parsimony::training
