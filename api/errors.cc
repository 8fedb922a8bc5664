#include "parsimony/api/errors.h"

#include <algorithm>
#include <string>

namespace parsimony::errors {

ConfigError bad_depth(std::string_view place, std::string_view found) {
  return ConfigError(std::string(place) + ": found \"" + std::string(found) +
                     "\", wanted a number of blocks, as 3, a share of them, as 25%, or auto");
}

ConfigError too_few_blocks(int64_t wanted, size_t blocks, size_t excluded) {
  std::string text = "--layers " + std::to_string(wanted) + ": the network has " +
                     std::to_string(blocks) + " residual block" + (blocks == 1 ? "" : "s");
  if (excluded > 0) {
    text += ", of which " + std::to_string(excluded) +
            " stay, as the configuration excludes layers in them";
  }
  return ConfigError(text + "; `parsimony explain --blocks` lists them");
}

ConfigError no_output_to_measure(std::string_view name) {
  return ConfigError("--metric: the network has no " +
                     (name.empty() ? "floating-point output" : "output " + in_quotes(name)));
}

ModelError label_beyond_classes(int64_t label, int64_t classes) {
  return ModelError("--metric perplexity: label " + std::to_string(label) + " is not in 0.." +
                    std::to_string(classes - 1) + ", the classes of the output");
}

ModelError no_boxes(const Shape& dims) {
  return ModelError("--metric boxes: a sample of the output has shape " + to_string(dims) +
                    ", wanted rows [boxes, 5 + classes] or columns [4 + classes, boxes]");
}

ModelError other_output_shape(std::string_view name) {
  return ModelError("--metric: output " + in_quotes(name) +
                    " has another shape than the dense network's");
}

ModelError metric_not_finite(std::string_view metric) {
  return ModelError("--metric " + std::string(metric) + ": outputs are NaN or infinite");
}

ConfigError depth_without_budget() {
  return ConfigError(
      "--layers auto: how many blocks are best depends on what may remain; say it with --budget "
      "macs=50% or params=50%");
}

UnsupportedError depth_of_latency() {
  return UnsupportedError(
      "--layers with a budget of milliseconds, of bytes or of several amounts: what blocks leave "
      "is "
      "counted in one of MACs and parameters; give --budget macs=… or params=…");
}

UnsupportedError exact_scales() {
  return UnsupportedError(
      "--rescale changes numbers that --constants exact computes with; use one of them");
}

ConfigError bad_ranks(std::string_view rank_name, int rank, std::string_view size_name, int size) {
  return ConfigError(std::string(rank_name) + " is " + std::to_string(rank) + " and " +
                     std::string(size_name) + " is " + std::to_string(size) +
                     "; ranks count from 0, and there is at least one");
}

ConfigError bad_arrays(std::string_view found) {
  return ConfigError("found " + in_quotes(found) +
                     ", wanted npz:FILE, safetensors:FILE or npy:NAME=FILE,…, with an array for "
                     "each input; for calibration also images:DIR, audio:DIR, text:FILE or "
                     "random:COUNT");
}

ConfigError no_array_for_input(std::string_view source, std::string_view input,
                               std::string_view wanted, std::string_view arrays) {
  return ConfigError(std::string(source) + ": no array for input " + in_quotes(input) + " " +
                     std::string(wanted) + "; there " +
                     (arrays.empty() ? "is none" : "are " + std::string(arrays)) +
                     ". A value for all elements: --input " + std::string(input) + "=0");
}

ConfigError arrays_differ(std::string_view source, std::string_view first, int64_t samples,
                          std::string_view other, int64_t other_samples) {
  return ConfigError(std::string(source) + ": array " + in_quotes(first) + " has " +
                     std::to_string(samples) + " samples, " + in_quotes(other) + " has " +
                     std::to_string(other_samples));
}

ModelError not_finite(std::string_view file, int64_t element) {
  return ModelError(std::string(file) + ": element " + std::to_string(element) +
                    " is NaN or infinite");
}

ConfigError no_input_for_array(std::string_view array, std::string_view dims,
                               std::span<const std::string> inputs) {
  std::string known;
  for (const std::string& name : inputs) known += (known.empty() ? "" : ", ") + in_quotes(name);
  return ConfigError("array " + in_quotes(array) + " " + std::string(dims) +
                     " is that of no input; the network has " + known + "." +
                     did_you_mean(array, inputs));
}

ConfigError array_of_other_shape(std::string_view array, std::string_view found,
                                 std::string_view wanted) {
  return ConfigError("array " + in_quotes(array) + " has shape " + std::string(found) +
                     ", the input wants " + std::string(wanted) + " (-1 is any size)");
}

ConfigError samples_of_other_shape(std::string_view source, std::string_view found,
                                   std::string_view wanted) {
  return ConfigError(std::string(source) + " gives shape " + std::string(found) +
                     ", the input wants " + std::string(wanted) + " (-1 is any size)");
}

ModelError element_does_not_fit(std::string_view array, int64_t index, double number,
                                std::string_view type) {
  return ModelError("element " + std::to_string(index) + " of array " + in_quotes(array) + " is " +
                    std::to_string(number) + ", which the input's type " + std::string(type) +
                    " does not hold");
}

IoError cannot_list(std::string_view folder, std::string_view why) {
  return IoError("cannot list " + in_quotes(folder) + ": " + std::string(why));
}

ConfigError no_files_below(std::string_view folder, std::string_view endings) {
  return ConfigError(std::string(folder) + ": found no " + std::string(endings) +
                     " in or below it");
}

ModelError damaged_image(std::string_view file, int64_t offset, std::string_view why) {
  return ModelError(std::string(file) + ": byte " + std::to_string(offset) +
                    ": damaged image: " + std::string(why));
}

ModelError damaged_sound(std::string_view file, std::string_view why) {
  return ModelError(std::string(file) + ": cannot be read as sound: " + std::string(why));
}

ModelError other_rate(std::string_view file, int64_t found, int64_t wanted) {
  return ModelError(std::string(file) + " has " + std::to_string(found) +
                    " samples per second, wanted " + std::to_string(wanted) + "; resample it");
}

ConfigError bad_audio_word(std::string_view word) {
  return ConfigError("audio: " + in_quotes(word) + ": wanted rate=N or frames=N, with N from 1");
}

ConfigError too_short(std::string_view file, int64_t found, int64_t wanted) {
  return ConfigError(std::string(file) + ": " + std::to_string(found) +
                     " elements, and one window has " + std::to_string(wanted));
}

ConfigError bad_image_spec(std::string_view word) {
  return ConfigError("--image " + in_quotes(word) +
                     ": wanted resize=N or HxW, crop=N or HxW, letterbox or letterbox=PAD (without "
                     "crop and resize=N), rgb, bgr or grey, nchw or nhwc, scale=S, mean=A/B/C, "
                     "std=A/B/C with one number or one per channel");
}

ConfigError no_image_input(std::string_view input, std::string_view dims) {
  return ConfigError("images: input " + in_quotes(input) + " " + std::string(dims) +
                     " takes no pictures, which have four axes");
}

ConfigError open_image_size(std::string_view input, std::string_view dims) {
  return ConfigError("images: input " + in_quotes(input) + " " + std::string(dims) +
                     " leaves the size open (-1): give it with --image resize=HxW, or --input");
}

ConfigError no_window_input(std::string_view input, std::string_view dims,
                            std::string_view option) {
  return ConfigError("input " + in_quotes(input) + " " + std::string(dims) +
                     " (-1 is any size) takes no windows [samples, length], or their length is "
                     "open: give it with " +
                     std::string(option));
}

ConfigError input_without_data(std::string_view source, std::string_view input) {
  return ConfigError(
      std::string(source) + " fills one input, and " + in_quotes(input) +
      " has none: give --input " + std::string(input) +
      "=VALUE, --states if an output is fed back to it, or arrays for all (npz:FILE)");
}

UnsupportedError not_with_interface(std::string_view option) {
  return UnsupportedError(std::string(option) +
                          " runs the small network on the data of the original, whose shapes "
                          "--states and --free change");
}

NoNumbersError gives_no_numbers(std::string_view output) {
  return NoNumbersError("the masked original gives NaN, or nothing but infinities, at output " +
                        in_quotes(output) +
                        " on random inputs of every kind that was tried: normally distributed, "
                        "between 0 and 1, between 0.5 and 1.5");
}

VerificationError not_proven(std::string_view worst, std::string_view guilty) {
  const std::string where =
      guilty.empty() ? "The fault is in no group alone: it must be in the edit of the model."
                     : "It begins with " + std::string(guilty) + ": exclude its layers.";
  return VerificationError("verification failed: " + std::string(worst) + ". " + where +
                           " Nothing was changed or written.");
}

VerificationError refuted(std::string_view worst, std::string_view engine) {
  return VerificationError(
      "verification failed in " + std::string(engine) + ": " + std::string(worst) +
      ". Nothing was changed or written; --engine libtorch asks libtorch alone.");
}

UnsupportedError small_refused(std::string_view why) {
  return UnsupportedError("the original can be opened, the small network cannot: " +
                          std::string(why) + ". Nothing was written.");
}

ConfigError recovery_without_data() {
  return ConfigError(
      "--recover needs data to run through the network: name them with --calibration DATA, for "
      "example --calibration cifar10:DIR");
}

ConfigError depth_without_data() {
  return ConfigError(
      "--layers removes the blocks that change their input least, which needs data; give "
      "--calibration, for example cifar10:DIR");
}

ConfigError no_calibration_data(int64_t batch) {
  return ConfigError(
      "calibration: there are fewer samples than the network takes at once, which is " +
      std::to_string(batch) + "; give more with --samples");
}

UnsupportedError needs_libtorch(std::string_view what) {
  return UnsupportedError(std::string(what) +
                          " needs libtorch, which ONNX Runtime cannot stand in for; install "
                          "parsimony-torch, or build with -DPARSIMONY_TORCH=ON where libtorch-dev "
                          "is installed");
}

UnsupportedError no_component(std::string_view path) {
  return UnsupportedError("this needs the libtorch component, which is not at " +
                          std::string(path) +
                          "; install parsimony-torch, or build with -DPARSIMONY_TORCH=ON where "
                          "libtorch-dev is installed. Proofs of ONNX models also run in ONNX "
                          "Runtime, whose library --onnxruntime or PARSIMONY_ONNXRUNTIME names");
}

UnsupportedError bad_component(std::string_view path, std::string_view why) {
  return UnsupportedError("the libtorch component " + std::string(path) +
                          " cannot be used: " + std::string(why));
}

ConfigError bad_network_name(std::string_view name) {
  return ConfigError("found " + in_quotes(name) + ", wanted a name without slashes for a network");
}

namespace {

UnsupportedError checkpoint_alone(std::string_view path, const std::string& why) {
  return UnsupportedError(
      std::string(path) +
      " is a checkpoint: tensors without the network that computes with them, and " + why +
      ". Either give the network as ONNX or .pt2 (torch.onnx.export, torch.export.save), and "
      "this file with --checkpoint; or make the network known, once, with `parsimony know NAME "
      "net.pt`. `parsimony inspect` lists what the file holds");
}

}  // namespace

UnsupportedError unknown_network(std::string_view path) {
  return checkpoint_alone(
      path, "their names are those of no known network (`parsimony know` lists them)");
}

UnsupportedError other_shapes(std::string_view path, std::string_view network,
                              std::string_view why) {
  return checkpoint_alone(path, "their shapes do not fit the network of these names, " +
                                    std::string(network) + " (" + std::string(why) + ")");
}

ConfigError provider_without_onnxruntime() {
  return ConfigError("--provider is one of ONNX Runtime's: it goes with --engine onnxruntime");
}

ConfigError unknown_engine(std::string_view name, std::span<const std::string> known) {
  std::string names;
  for (size_t i = 0; i < known.size(); ++i) {
    names += (i == 0 ? "" : i + 1 < known.size() ? ", " : " or ") + in_quotes(known[i]);
  }
  return ConfigError("--engine: found " + in_quotes(name) + ", wanted " + names + "." +
                     did_you_mean(name, known));
}

UnsupportedError not_maskable() {
  return UnsupportedError(
      "ONNX Runtime runs files, and there is none of the masked original; libtorch can run it");
}

ModelError command_failed(std::string_view option, std::string_view command, std::string_view why,
                          std::string_view output) {
  constexpr size_t kShown = 500;
  const std::string_view end = output.substr(output.size() - std::min(output.size(), kShown));
  return ModelError(std::string(option) + ": " + std::string(command) + ": " + std::string(why) +
                    (end.empty() ? ", and nothing else" : "; it printed: " + std::string(end)));
}

UnsupportedError not_in_latency_table(std::string_view file, std::string_view machine,
                                      std::string_view what) {
  return UnsupportedError(std::string(file) + " has the times of layers on " +
                          std::string(machine) + ", but none of " + std::string(what) +
                          "; measure it there, or give --latency-command");
}

}  // namespace parsimony::errors
