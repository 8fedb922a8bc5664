// A network in a file as a Net: ONNX by the executor, or TorchScript.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "parsimony/training/net/net.h"

namespace parsimony::training {

struct FileNetOptions {
  bool batch_norm = false;  ///< BatchNorms for the time of training (TrainingNorms); ONNX only
};

/// What reads the file `path` anew at every call. Saved, it has the file's format.
/// @throws IoError, ModelError, UnsupportedError
std::function<std::unique_ptr<Net>()> file_net(const std::string& path,
                                               const FileNetOptions& options = {});

}  // namespace parsimony::training
