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
ConfigError bad_device(std::string_view device);
UnsupportedError no_such_device(std::string_view device, std::string_view why);
/// The network's outputs do not match the data's classes, or its inputs do not match the samples.
ModelError does_not_fit(std::string_view why);
/// The file's network does not treat the samples of a batch independently.
UnsupportedError fixed_batch(std::string_view path, int64_t batch, std::string_view why);
UnsupportedError several_inputs(std::string_view path, size_t inputs);
UnsupportedError nothing_to_train(std::string_view path);
/// BatchNorms for training were requested, but no convolution can have one.
ConfigError nothing_to_normalise(std::string_view path);
ConfigError norms_need_onnx(std::string_view what);
UnsupportedError exported_program(std::string_view path);
/// `what` keeps tensors of all parameters beyond a cut.
ConfigError norms_keep_no_record(std::string_view what);
ModelError no_tensor(std::string_view path);
/// `guilty` is empty if no group is at fault.
ModelError other_values(std::string_view name, std::string_view why);
/// Slimming needs BatchNorm scales, and there are none.
ConfigError no_scale();
/// In the user's own training loop.
UnsupportedError schedule_needs_run(std::string_view schedule);
ConfigError bad_store(std::string_view store);
UnsupportedError nothing_to_reduce();
/// `doing`: "summing".
/// @param doing  what this one needed the others for
IoError rank_lost(const RankPlace& place, std::string_view doing, const std::vector<int>& lost,
                  std::string_view why);
UnsupportedError unused_parameters(std::string_view why);
ConfigError ranks_differ(std::string_view what, int rank);
ModelError cut_failed(size_t rank, std::string_view why);
ModelError bad_checkpoint(std::string_view path, std::string_view why);
ConfigError other_run(std::string_view path);

ConfigError bad_loader_option(std::string_view option, std::string_view found,
                              std::string_view wanted);

/// A network made from a graph supports training only.
UnsupportedError only_trained(std::string_view what);
/// `what` needs them.
ConfigError needs_labels(std::string_view what);
/// Of a loss between outputs and targets.
ConfigError loss_of_no_output(std::string_view name, const std::vector<std::string>& outputs);
ConfigError no_targets(std::string_view output);
ModelError target_does_not_fit(std::string_view output, std::string_view loss, const Shape& target,
                               const Shape& found);
ModelError target_beyond(std::string_view output, std::string_view loss, double found,
                         double lowest, double highest);
/// Nothing that gradients could be taken of.
UnsupportedError no_numbers_out();

/// Labelled samples support one input only: `found` are those that the data give.
UnsupportedError calibration_inputs(size_t inputs, size_t found);
/// The samples' dims differ from the network's declared input.
ModelError calibration_dims(const Shape& found, const Shape& wanted);
/// A value to match that the small network does not compute.
ConfigError no_value_to_match(std::string_view value);
/// Of a network that is trained to give another one's outputs.
ModelError other_outputs(size_t wanted, size_t found);
/// Gradients need outputs [n, classes].
ModelError no_classes(const Shape& found, int64_t samples);
/// The criterion needs single samples, and the network takes `batch`.
UnsupportedError needs_single_samples(int64_t batch);
ModelError label_beyond(int64_t label, int64_t classes);

}  // namespace parsimony::training::errors
