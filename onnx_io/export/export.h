// Exports a network that was read from TorchScript as an ONNX model.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "parsimony/graph/graph.h"
#include "parsimony/graph/interface.h"

namespace parsimony::onnx_io {

/// The newest opset that libonnx 1.12 can check; ONNX Runtime supports it since 1.12.
inline constexpr int kExportOpset = 17;
/// The symbolic name of a dynamic batch dimension.
inline constexpr const char* kBatchSymbol = "batch";

/// Where elements are in a file beside the model, in its folder.
struct ExternalPlace {
  std::string file;
  int64_t offset = 0;
};

struct ExportOptions {
  /// Makes the leading dimension symbolic for every input that shares it with the first input;
  /// sizes that follow from it are computed at run time.
  bool dynamic_batch = false;
  /// Folds BatchNormalizations into the convolutions before them: fewer nodes, other weights.
  bool fold_batchnorm = false;
  /// Names of the outputs in order; the remaining ones keep the graph's names.
  std::vector<std::string> outputs = {};
  /// Every weight has its own form, for whoever changes it by its name: what other forms are needed
  /// is computed when the model runs.
  bool keeps_weights = false;
  /// Where a weight already is; without an answer it goes into the model. Empty: all do. A model
  /// with such weights is not checked.
  std::function<std::optional<ExternalPlace>(const Weight&)> place = {};
};

/// Exports the graph as an ONNX model of opset 17, with its weights under their names, the sizes of
/// its inputs, and the inferred types of its outputs. Values that depend on sizes alone become
/// constants. The model passes `check`.
///
///     ScriptGraph script = torch_io::read_script(module, {{{1, 3, 224, 224}, {}}});
///     std::string bytes = onnx_io::export_onnx(script.graph, {{{1, 3, 224, 224}, {}}});
/// @param inputs  shapes, and values of numbers, with which the graph was read
/// @throws UnsupportedError for an operator that has no counterpart in ONNX, naming the line that
/// calls it; for results that do not depend on the inputs alone; for models above 2 GB
/// @throws ModelError if `check` fails
std::string export_onnx(const Graph& graph, const std::vector<InputSpec>& inputs,
                        const ExportOptions& options = {});

/// Returns the inputs with another batch size, to test a dynamic batch.
std::vector<InputSpec> with_other_batch(std::vector<InputSpec> inputs);

/// Runs ONNX's checker and its strict type and shape inference.
/// @throws ModelError with their message
void check(const std::string& model);

}  // namespace parsimony::onnx_io
