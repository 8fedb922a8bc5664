// A network that was read from TorchScript as an ONNX model of its own.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "parsimony/graph/graph.h"
#include "parsimony/graph/input_spec.h"

namespace parsimony::onnx_io {

/// The newest that libonnx 1.12 can check; ONNX Runtime has it since 1.12.
inline constexpr int kExportOpset = 17;
/// ONNX's name for the size that a dynamic batch leaves open.
inline constexpr const char* kBatchSymbol = "batch";

struct ExportOptions {
  /// Leaves the leading size of every input open whose size is that of the first input's; sizes
  /// that follow from it are computed when the model runs.
  bool dynamic_batch = false;
  /// Joins a BatchNormalization with the convolution before it: fewer nodes, other weights.
  bool fold_batchnorm = false;
  /// Names of the outputs, in their order; those beyond the end keep the graph's.
  std::vector<std::string> outputs = {};
};

/// The bytes of an ONNX model of opset 17 with the graph's weights under their names, the sizes of
/// its inputs, and what inference knows of its outputs. What follows from the sizes alone becomes
/// constants. The model passes `check`.
///
///     ScriptGraph script = torch_io::read_script(module, {{{1, 3, 224, 224}, {}}});
///     std::string bytes = onnx_io::export_onnx(script.graph, {{{1, 3, 224, 224}, {}}});
///
/// @param inputs shapes, and values of the numbers, as the graph was read with
/// @throws UnsupportedError for an operator that has no counterpart in ONNX, naming the line that
/// calls it; for what is not computed from the inputs alone; for models above 2 GB
/// @throws ModelError for what `check` finds
std::string export_onnx(const Graph& graph, const std::vector<InputSpec>& inputs,
                        const ExportOptions& options = {});

/// The same inputs with another leading size wherever it is that of the first input: what a dynamic
/// batch is tried with.
std::vector<InputSpec> with_other_batch(std::vector<InputSpec> inputs);

/// Asks ONNX's own checker and its strict inference of types and shapes.
/// @throws ModelError with what they say
void check(const std::string& model);

}  // namespace parsimony::onnx_io
