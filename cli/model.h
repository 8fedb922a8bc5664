// Opens model files of every format, in memory with large pages.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "parsimony/api/prune.h"
#include "parsimony/engines/editable_model.h"

namespace parsimony::cli {

/// Reads a model: ONNX, TorchScript, .pt2, or a checkpoint of a known network. `specs` are those of
/// --input; ONNX files need none.
/// @throws IoError, ModelError, UnsupportedError, ConfigError
std::unique_ptr<EditableFile> open_model(const std::string& path,
                                         const std::vector<std::string>& specs);

/// A model and its analysis, for inspect and explain.
struct AnalysedModel {
  std::unique_ptr<EditableFile> model;
  Analysis analysis;

  const Graph& graph() const { return model->graph(); }
};

/// Reads and analyses, with a progress bar unless `quiet`. `specs` are the request's inputs.
/// @throws IoError, ModelError, UnsupportedError, ConfigError
AnalysedModel read_and_analyse(const std::string& path, const std::vector<std::string>& specs,
                               PruneRequest request, bool quiet);

/// Makes the allocator use 2 MB pages if available, unless MIMALLOC_LARGE_OS_PAGES is set. A tensor
/// of 100 MB then takes 50 page faults instead of 25,000; a small command would only pay for
/// clearing pages that it does not fill.
void allow_large_pages();

/// Makes allow_large_pages() do nothing: the allocator never returns large pages to the system, so
/// a process stays as large as what it had at once.
void refuse_large_pages();

}  // namespace parsimony::cli
