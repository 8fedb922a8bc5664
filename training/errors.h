// Error messages of training/ that several files throw.
#pragma once

#include <cstdint>
#include <string_view>

#include "parsimony/base/errors.h"

namespace parsimony::training::errors {

UnsupportedError half_needs_cuda();
/// The network's outputs do not match the data's classes, or its inputs do not match the samples.
ModelError does_not_fit(std::string_view why);
/// The file's network does not treat the samples of a batch independently.
UnsupportedError fixed_batch(std::string_view path, int64_t batch, std::string_view why);
UnsupportedError nothing_to_train(std::string_view path);
ConfigError norms_need_onnx(std::string_view what);
ModelError other_values(std::string_view name, std::string_view why);

}  // namespace parsimony::training::errors
