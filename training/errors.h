// Error texts of training/, but for those of data sets.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "parsimony/base/errors.h"
#include "parsimony/base/types.h"

namespace parsimony::training::errors {

UnsupportedError half_needs_cuda();
ConfigError bad_device(std::string_view device);
UnsupportedError no_such_device(std::string_view device, std::string_view why);
/// The network's answers do not fit the data's classes, or it takes other inputs.
ModelError does_not_fit(std::string_view why);
/// The file's network does not compute `batch` samples as it computes each.
UnsupportedError fixed_batch(std::string_view path, int64_t batch, std::string_view why);
UnsupportedError several_inputs(std::string_view path, size_t inputs);
UnsupportedError nothing_to_train(std::string_view path);
/// BatchNorms for training were asked for; no convolution can have one.
ConfigError nothing_to_normalise(std::string_view path);
ConfigError norms_need_onnx(std::string_view what);
/// `what` keeps tensors of all parameters beyond a cut.
ConfigError norms_keep_no_record(std::string_view what);
ModelError no_tensor(std::string_view path);
/// `guilty` may be empty: the fault is in no group.
ModelError other_values(std::string_view name, std::string_view why);
/// Slimming has nothing to work on.
ConfigError no_scale();
/// In a loop of the user's own.
UnsupportedError schedule_needs_run(std::string_view schedule);
ModelError bad_checkpoint(std::string_view path, std::string_view why);
ConfigError other_run(std::string_view path);

ConfigError bad_loader_option(std::string_view option, std::string_view found,
                              std::string_view wanted);

/// A network that stands for a graph was asked for more than training.
UnsupportedError only_trained(std::string_view what);
/// Labelled samples feed one input.
UnsupportedError recovery_inputs(size_t inputs);

/// Labelled samples feed one input.
UnsupportedError calibration_inputs(size_t inputs);
/// The samples are of other dims than the network's input declares.
ModelError calibration_dims(const Shape& found, const Shape& wanted);
/// There is not a single whole batch.
ConfigError no_calibration_data(int64_t batch);
/// Gradients need answers [n, classes].
ModelError no_classes(const Shape& found, int64_t samples);
/// The criterion looks at one sample at a time, and the network takes `batch`.
UnsupportedError needs_single_samples(int64_t batch);
ModelError label_beyond(int64_t label, int64_t classes);

}  // namespace parsimony::training::errors
