// Exports TorchScript and live modules to ONNX, and verifies the result.
#pragma once

#include <torch/csrc/jit/api/module.h>
#include <torch/nn/module.h>

#include <cstdint>
#include <string>
#include <vector>

#include "parsimony/graph/interface.h"
#include "parsimony/speedup/proof.h"
#include "parsimony/torch_io/mirror.h"

namespace parsimony {

struct TorchExportOptions {
  /// Makes the batch dimension symbolic; verified for two sizes.
  bool dynamic_batch = false;
  /// Folds each BatchNorm into the convolution before it.
  bool fold_batchnorm = false;
  /// Names of the outputs. Empty: those of `forward`, see ScriptGraph::results.
  std::vector<std::string> outputs = {};
  ProofOptions proof = {};
};

/// The result of an export.
struct Exported {
  std::vector<std::string> inputs;   ///< "x float32[batch, 3, 224, 224]", in the file's order
  std::vector<std::string> outputs;  ///< likewise
  int opset = 0;
  int64_t nodes = 0;
  int64_t bytes = 0;
  std::vector<std::string> notes;
  Proof proof;  ///< of the file, run by the executor, against the module, run by libtorch
};

/// Writes `module`'s forward, for inputs of these sizes and in evaluation mode, as an ONNX file of
/// opset 17. All or nothing: if it throws, an existing file at `path` is unchanged.
/// @param inputs  one per argument: its shape, or for a number its value, which becomes fixed in
/// the file
/// @throws UnsupportedError for operations without ONNX operators and for values known only at run
/// time, naming the line of the program
/// @throws VerificationError if the file does not compute what the module does
/// @throws ConfigError, ModelError: see read_script; IoError
Exported export_onnx(const torch::jit::Module& module, const std::vector<InputSpec>& inputs,
                     const std::string& path, const TorchExportOptions& options = {});

/// Exports a torch::nn module: `forward` runs it and is traced once with `example`.
Exported export_onnx(torch::nn::Module& module, const torch_io::Forward& forward,
                     const std::vector<at::Tensor>& example, const std::string& path,
                     const TorchExportOptions& options = {});

/// Exports anything with a `forward(Tensor)`: a module, or a holder of one. `example` has the shape
/// and type of the input, `[batch, ...]`.
///
///     parsimony::prune(model, torch::rand({1, 3, 32, 32}), config);
///     train(model, optimizer);
///     parsimony::export_onnx(model, torch::rand({1, 3, 32, 32}), "small.onnx");
template <typename Model>
Exported export_onnx(Model& model, const at::Tensor& example, const std::string& path,
                     const TorchExportOptions& options = {}) {
  if constexpr (requires { model->forward(example); }) {
    const auto run = [&](const std::vector<at::Tensor>& x) { return model->forward(x.at(0)); };
    return export_onnx(*model, run, {example}, path, options);
  } else {
    const auto run = [&](const std::vector<at::Tensor>& x) { return model.forward(x.at(0)); };
    return export_onnx(model, run, {example}, path, options);
  }
}

}  // namespace parsimony
