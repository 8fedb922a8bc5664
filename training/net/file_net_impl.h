// Shared code of the two file formats.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "parsimony/engines/editable_model.h"
#include "parsimony/training/net/trainable_model.h"

namespace parsimony::training {

std::unique_ptr<TrainableModel> onnx_net(const std::string& path, const FileNetOptions& options);
std::unique_ptr<TrainableModel> script_net(const std::string& path);

/// Explains a failure on `x` that occurs because the network accepts one sample only: tries `run`
/// on one and on two. @throws UnsupportedError, or nothing
void blame_batch(const std::string& path, const at::Tensor& x, const std::string& why,
                 const std::function<void(const at::Tensor&)>& run);

/// Prunes with libtorch. @throws VerificationError naming the group, ConfigError,
/// ModelError, UnsupportedError
PruneResult prune_file(EditableModel& model, std::vector<InputSpec> inputs,
                       const PruneRequest& request, const PruneServices& services);

/// Returns the plan without value changes: values are filled in afterwards.
Plan shapes_of(const Plan& plan);

}  // namespace parsimony::training
