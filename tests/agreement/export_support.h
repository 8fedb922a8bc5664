// Exports a module to a file and has ONNX Runtime, where it is found, run the file too.
#pragma once

#include <torch/csrc/jit/api/module.h>

#include <string>
#include <vector>

#include "parsimony/torch_io/export/export.h"

namespace parsimony::test {

/// A scripted module with `def forward(self, x): return BODY` and parameters of these shapes,
/// seeded: self.w0, self.w1, ….
torch::jit::Module expression(const std::string& body, const std::vector<Shape>& weights = {});

/// Exports, which proves by our executor, and compares with ONNX Runtime on the same inputs to
/// within 1e-4 of the largest element; with a dynamic batch, on another one as well.
Exported expect_exported(const torch::jit::Module& module, const std::vector<InputSpec>& inputs,
                         const ExportSettings& options = {});

}  // namespace parsimony::test
