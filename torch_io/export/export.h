// Exports TorchScript and live modules to ONNX, and verifies the result.
#pragma once

#include <torch/csrc/jit/api/module.h>
#include <torch/nn/module.h>

#include <string>
#include <vector>

#include "parsimony/api/export_model.h"
#include "parsimony/graph/interface.h"
#include "parsimony/torch_io/mirror.h"

namespace parsimony {

/// Writes `module`'s forward, for inputs of these sizes and in evaluation mode, as an ONNX file,
/// run by the executor and compared with the module, run by libtorch; see `write_onnx`.
/// @throws ConfigError, ModelError: see read_script; and as `write_onnx`
Exported export_onnx(const torch::jit::Module& module, const std::vector<InputSpec>& inputs,
                     const std::string& path, const ExportSettings& settings = {});

/// Exports a torch::nn module: `forward` runs it and is traced once with `example`.
Exported export_onnx(torch::nn::Module& module, const torch_io::Forward& forward,
                     const std::vector<at::Tensor>& example, const std::string& path,
                     const ExportSettings& settings = {});

/// Exports anything with a `forward(Tensor)`: a module, or a holder of one. `example` has the shape
/// and type of the input, `[batch, ...]`.
///
///     parsimony::prune(model, torch::rand({1, 3, 32, 32}), config);
///     train(model, optimizer);
///     parsimony::export_onnx(model, torch::rand({1, 3, 32, 32}), "small.onnx");
template <typename Model>
Exported export_onnx(Model& model, const at::Tensor& example, const std::string& path,
                     const ExportSettings& settings = {}) {
  if constexpr (requires { model->forward(example); }) {
    const auto run = [&](const std::vector<at::Tensor>& x) { return model->forward(x.at(0)); };
    return export_onnx(*model, run, {example}, path, settings);
  } else {
    const auto run = [&](const std::vector<at::Tensor>& x) { return model.forward(x.at(0)); };
    return export_onnx(model, run, {example}, path, settings);
  }
}

}  // namespace parsimony
