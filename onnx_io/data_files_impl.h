// The names of the data files beside a model: where new ones go, and which old ones go away.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "parsimony/onnx_io/model_file_impl.h"

namespace parsimony::onnx_io {

/// Do tensors of the model that was read lie in the file?
bool is_own_file(const ModelFile::Impl& impl, const std::filesystem::path& path);

/// Where the external data of a model written to `path` go: a file that the model in memory does
/// not read.
std::string data_path(const ModelFile::Impl& impl, const std::string& path);

/// Data files that nothing uses once the model at `path` was replaced by what was read from it:
/// those that belong to it by their names, M.onnx.data, M.onnx_data, M.onnx.1.data. Others may be
/// some other model's, links are a hub's. None where `path` is another file than the one read.
std::vector<std::filesystem::path> data_files_left_by(const ModelFile::Impl& impl,
                                                      const std::string& path);

}  // namespace parsimony::onnx_io
