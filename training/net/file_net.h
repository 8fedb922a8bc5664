// A model file as a TrainableModel: ONNX, run by the executor, or TorchScript.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "parsimony/training/net/trainable_model.h"

namespace parsimony::training {

struct FileNetOptions {
  bool batch_norm = false;  ///< BatchNorms during training (TrainingNorms); ONNX only
};

/// A factory that reads the file at every call. Networks are saved in the file's format.
/// @throws IoError, ModelError, UnsupportedError
std::function<std::unique_ptr<TrainableModel>()> file_net(const std::string& path,
                                                          const FileNetOptions& options = {});

}  // namespace parsimony::training
