// A model and what the analysis finds in it; what inspect and explain begin with.
#pragma once

#include <string>
#include <vector>

#include "parsimony/api/prune.h"
#include "parsimony/onnx_io/model_file.h"

namespace parsimony::cli {

struct AnalysedModel {
  onnx_io::ModelFile file;  // before the graph, which points into it
  Graph graph;
  Analysis analysis;
};

/// Reads and analyses, with a progress bar unless `quiet`. `granularity` may be empty.
/// @throws IoError, ModelError, UnsupportedError, ConfigError
AnalysedModel read_and_analyse(const std::string& path, const std::vector<std::string>& specs,
                               const std::string& granularity, bool quiet);

}  // namespace parsimony::cli
