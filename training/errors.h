// Error texts of training/, except those of data sets.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "parsimony/api/ranks.h"
#include "parsimony/base/errors.h"
#include "parsimony/base/types.h"

namespace parsimony::training::errors {

UnsupportedError half_needs_cuda();
/// The network's outputs do not match the data's classes, or its inputs do not match the samples.
ModelError does_not_fit(std::string_view why);
/// The file's network does not treat the samples of a batch independently.
UnsupportedError fixed_batch(std::string_view path, int64_t batch, std::string_view why);
UnsupportedError nothing_to_train(std::string_view path);
ConfigError norms_need_onnx(std::string_view what);
ModelError no_tensor(std::string_view path);
/// `guilty` is empty if no group is at fault.
ModelError other_values(std::string_view name, std::string_view why);
/// Slimming needs BatchNorm scales, and there are none.
ConfigError no_scale();
/// `doing`: "summing".
/// @param doing  what this one needed the others for
IoError rank_lost(const RankPlace& place, std::string_view doing, const std::vector<int>& lost,
                  std::string_view why);

/// Of a loss between outputs and targets.
ConfigError loss_of_no_output(std::string_view name, const std::vector<std::string>& outputs);
ModelError target_beyond(std::string_view output, std::string_view loss, double found,
                         double lowest, double highest);

/// Gradients need outputs [n, classes].
ModelError no_classes(const Shape& found, int64_t samples);

}  // namespace parsimony::training::errors
