// Error texts of api/.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "parsimony/base/errors.h"
#include "parsimony/base/types.h"

namespace parsimony::errors {

/// `place` is where it was given: "--layers".
ConfigError bad_depth(std::string_view place, std::string_view found);
/// `excluded` of the network's `blocks` are kept because the configuration excludes layers in them.
ConfigError too_few_blocks(int64_t wanted, size_t blocks, size_t excluded);
/// The best number of blocks is defined only relative to a budget.
ConfigError depth_without_budget();
/// A metric of an output that is not there, or of any if none is floating-point.
ConfigError no_output_to_measure(std::string_view name);
ModelError other_output_shape(std::string_view name);
/// Perplexity of labels that are no classes of the output.
ModelError label_beyond_classes(int64_t label, int64_t classes);
/// The metric `boxes` of an output that has none.
ModelError no_boxes(const Shape& dims);
ModelError metric_not_finite(std::string_view metric);
UnsupportedError depth_of_latency();
/// The constants that --constants exact folds were computed with the original scales.
UnsupportedError exact_scales();
/// Of a launcher's variables.
ConfigError bad_ranks(std::string_view rank_name, int rank, std::string_view size_name, int size);
/// Of arrays by input name: --sample and --calibration.
ConfigError bad_arrays(std::string_view found);
ConfigError no_array_for_input(std::string_view source, std::string_view input,
                               std::string_view wanted, std::string_view arrays);
ConfigError arrays_differ(std::string_view source, std::string_view first, int64_t samples,
                          std::string_view other, int64_t other_samples);
ModelError not_finite(std::string_view file, int64_t element);
ConfigError no_input_for_array(std::string_view array, std::string_view dims,
                               std::span<const std::string> inputs);
ConfigError array_of_other_shape(std::string_view array, std::string_view found,
                                 std::string_view wanted);
ConfigError samples_of_other_shape(std::string_view source, std::string_view found,
                                   std::string_view wanted);
ModelError element_does_not_fit(std::string_view array, int64_t index, double number,
                                std::string_view type);
/// Of files of samples.
IoError cannot_list(std::string_view folder, std::string_view why);
ConfigError no_files_below(std::string_view folder, std::string_view endings);
ModelError damaged_image(std::string_view file, int64_t offset, std::string_view why);
ModelError damaged_sound(std::string_view file, std::string_view why);
ModelError other_rate(std::string_view file, int64_t found, int64_t wanted);
ConfigError bad_audio_word(std::string_view word);
/// A file of fewer elements than one window has.
ConfigError too_short(std::string_view file, int64_t found, int64_t wanted);
ConfigError bad_image_spec(std::string_view word);
ConfigError no_image_input(std::string_view input, std::string_view dims);
ConfigError open_image_size(std::string_view input, std::string_view dims);
/// `option` says how long a window is.
ConfigError no_window_input(std::string_view input, std::string_view dims, std::string_view option);
/// Only one input is filled by pictures, sound or text.
ConfigError input_without_data(std::string_view source, std::string_view input);
/// --states and --free change what the network reads and answers.
UnsupportedError not_with_interface(std::string_view option);
/// Of the original, on random inputs of all kinds.
class NoNumbersError : public UnsupportedError {
 public:
  using UnsupportedError::UnsupportedError;
};
NoNumbersError gives_no_numbers(std::string_view output);
/// `worst` is a to_text(OutputDifference); `guilty` a group, or empty.
VerificationError not_proven(std::string_view worst, std::string_view guilty);
/// By an engine that ran the original, though another has nothing against the small network, or
/// cannot tell.
VerificationError refuted(std::string_view worst, std::string_view engine);
/// By an engine that opens the original.
UnsupportedError small_refused(std::string_view why);
/// --recover needs data, and none were given.
ConfigError recovery_without_data();
/// --layers needs data, and none were given.
ConfigError depth_without_data();
/// Calibration data without a complete batch.
ConfigError no_calibration_data(int64_t batch);
/// `what` is something that ONNX Runtime cannot do, and the component is missing.
UnsupportedError needs_libtorch(std::string_view what);
/// The libtorch component is missing.
UnsupportedError no_component(std::string_view path);
/// The component exists but cannot be used; `why` is the reason.
UnsupportedError bad_component(std::string_view path, std::string_view why);
ConfigError bad_network_name(std::string_view name);
/// A checkpoint alone, of a network that is not known.
UnsupportedError unknown_network(std::string_view path);
/// The names are those of a known network, the shapes do not fit its graph.
UnsupportedError other_shapes(std::string_view path, std::string_view network,
                              std::string_view why);
/// --provider with --engine libtorch.
ConfigError provider_without_onnxruntime();
ConfigError unknown_engine(std::string_view name, std::span<const std::string> known);
/// ONNX Runtime has no masked execution.
UnsupportedError not_maskable();
/// A command that `option` gives; `output` is what it printed.
ModelError command_failed(std::string_view option, std::string_view command, std::string_view why,
                          std::string_view output);
/// Tables of another machine do not have all layers of the network; `what` is one of them.
UnsupportedError not_in_latency_table(std::string_view file, std::string_view machine,
                                      std::string_view what);

}  // namespace parsimony::errors
