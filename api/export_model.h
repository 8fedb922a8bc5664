// Writes PyTorch's files as ONNX models, and verifies the result.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "parsimony/engines/network.h"
#include "parsimony/graph/graph.h"
#include "parsimony/graph/interface.h"
#include "parsimony/speedup/proof.h"

namespace parsimony {

struct ExportSettings {
  /// Makes the batch dimension symbolic; verified for two sizes.
  bool dynamic_batch = false;
  /// Folds each BatchNorm into the convolution before it.
  bool fold_batchnorm = false;
  /// Names of the outputs. Empty: the network's own.
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
  Proof proof;  ///< of the file against the network; without outputs where nothing runs the network
};

/// How both sides are run.
struct ExportSides {
  /// Opens the network that is exported; returns null, or is empty, where nothing here runs it.
  std::function<std::unique_ptr<Network>()> original;
  /// Opens what was written: `file`, as the graph that was read from it.
  std::function<std::unique_ptr<Network>(const Graph& graph, const std::string& file)> written;
};

/// Writes a network that was read from PyTorch as an ONNX file of opset 17. All or nothing: if it
/// throws, an existing file at `path` is unchanged.
/// @param inputs  one per input of `source`: its shape, or for a number its value, which becomes
/// fixed in the file
/// @throws UnsupportedError for operations without ONNX operators and for values known only at run
/// time, naming the line of the program
/// @throws VerificationError if the file computes something else; ModelError, IoError
Exported write_onnx(const Graph& source, const std::vector<InputSpec>& inputs,
                    const std::string& path, const ExportSettings& settings,
                    const ExportSides& sides);

struct ExportJob {
  std::string model;                ///< TorchScript or `.pt2`
  std::vector<std::string> inputs;  ///< those of --input; empty: those that a `.pt2` file declares
  std::string output;
  ExportSettings settings;
  std::optional<int> cores;
};

/// Exports a file. A `.pt2` program is run by libtorch's executor where there is libtorch, and what
/// is written by ONNX Runtime where that is found. @throws as `write_onnx`; ConfigError
Exported export_model(const ExportJob& job);

}  // namespace parsimony
