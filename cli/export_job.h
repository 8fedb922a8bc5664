// The export job that the command passes to the libtorch component, and its outcome.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "parsimony/speedup/proof.h"

namespace parsimony::cli {

struct ExportJob {
  std::string model;                ///< TorchScript
  std::vector<std::string> inputs;  ///< those of --input
  std::string output;
  std::vector<std::string> names;  ///< of the outputs; empty: those of `forward`
  bool dynamic_batch = false;
  bool fold_batchnorm = false;
  ProofOptions proof;
};

/// See Exported of torch_io/export.
struct ExportOutcome {
  std::vector<std::string> inputs;
  std::vector<std::string> outputs;
  int opset = 0;
  int64_t nodes = 0;
  int64_t bytes = 0;
  std::vector<std::string> notes;
  Proof proof;
};

}  // namespace parsimony::cli
