#include "parsimony/onnx_io/errors.h"

namespace parsimony::onnx_io::errors {
namespace {

std::string at(std::string_view path) { return std::string(path) + ": "; }

std::string of_tensor(std::string_view tensor) { return "tensor " + in_quotes(tensor) + ": "; }

std::string between(int64_t lowest, int64_t highest) {
  return "wanted " + std::to_string(lowest) + " to " + std::to_string(highest);
}

}  // namespace

IoError cannot_read(std::string_view path, std::string_view why) {
  return IoError(at(path) + "cannot be read: " + std::string(why));
}

IoError cannot_write(std::string_view path, std::string_view why) {
  return IoError(at(path) + "cannot be written: " + std::string(why));
}

ModelError bad_model(std::string_view path, std::string_view why) {
  return ModelError(at(path) + std::string(why));
}

ModelError truncated(std::string_view path, int64_t stopped_at, int64_t size) {
  return ModelError(at(path) + "truncated or damaged: reading stopped at byte " +
                    std::to_string(stopped_at) + " of " + std::to_string(size));
}

ModelError too_large(std::string_view path, int64_t bytes) {
  return ModelError(at(path) + std::to_string(bytes) +
                    " bytes exceed the 2 GB that one ONNX file can hold; save the model with "
                    "external data");
}

UnsupportedError bad_ir_version(std::string_view path, int64_t found, int64_t lowest,
                                int64_t highest) {
  return UnsupportedError(at(path) + "IR version " + std::to_string(found) + ": " +
                          between(lowest, highest) + "; export the model with another version");
}

UnsupportedError bad_opset(std::string_view path, int64_t found, int64_t lowest, int64_t highest) {
  return UnsupportedError(at(path) + "opset " + std::to_string(found) + ": " +
                          between(lowest, highest) +
                          "; convert the model with onnx.version_converter or export it again");
}

ModelError defined_twice(std::string_view what, std::string_view name) {
  return ModelError(std::string(what) + " " + in_quotes(name) +
                    " is defined twice: names of values must be unique");
}

ModelError missing_output(std::string_view name) {
  return ModelError("graph output " + in_quotes(name) +
                    " is neither a graph input, nor an initializer, nor the output of a node");
}

ModelError wrong_data_size(std::string_view tensor, std::string_view dims, std::string_view dtype,
                           int64_t wanted_bytes, int64_t found_bytes) {
  return ModelError(of_tensor(tensor) + "wrong dims: " + std::string(dims) + " of " +
                    std::string(dtype) + " need " + std::to_string(wanted_bytes) +
                    " bytes of data, found " + std::to_string(found_bytes));
}

ModelError bad_location(std::string_view tensor, std::string_view location, std::string_view why) {
  return ModelError(of_tensor(tensor) + "external data location " + in_quotes(location) + " " +
                    std::string(why));
}

ModelError bad_range(std::string_view tensor, std::string_view location, int64_t offset,
                     int64_t bytes, int64_t file_bytes) {
  return ModelError(of_tensor(tensor) + "external data: wanted " + std::to_string(bytes) +
                    " bytes from offset " + std::to_string(offset) + " of " + in_quotes(location) +
                    ", found a file of " + std::to_string(file_bytes) + " bytes");
}

ModelError bad_entry(std::string_view tensor, std::string_view key, std::string_view value) {
  return ModelError(of_tensor(tensor) + "external data: " + std::string(key) + " " +
                    in_quotes(value) + " is not a number of bytes");
}

ModelError in_subgraph(std::string_view node, std::string_view attribute, const ModelError& error) {
  return ModelError("node " + in_quotes(node) + ", " + std::string(attribute) + ": " +
                    error.what());
}

ModelError unknown_tensor(std::string_view name, std::span<const std::string> candidates) {
  return ModelError("the model has no tensor " + in_quotes(name) + "." +
                    did_you_mean(name, candidates));
}

ModelError unknown_node(std::string_view key, std::span<const std::string> candidates) {
  return ModelError("the model has no node whose first output is " + in_quotes(key) + "." +
                    did_you_mean(key, candidates));
}

ModelError no_such_input(std::string_view node, int input, int inputs) {
  return ModelError("node " + in_quotes(node) + ": no input " + std::to_string(input) +
                    ", it has " + std::to_string(inputs));
}

ModelError name_taken(std::string_view tensor) {
  return ModelError(of_tensor(tensor) + "cannot be added: the name is taken");
}

ModelError copy_outside(std::string_view tensor, std::string_view of) {
  return ModelError(of_tensor(tensor) + "cannot be added: a copy of " + in_quotes(of) +
                    " must be in the same graph");
}

ModelError not_dense(std::string_view tensor) {
  return ModelError(of_tensor(tensor) + "cannot be edited: it is not a dense tensor of numbers");
}

ModelError too_many_zeros(std::string_view tensor, int64_t wanted, int64_t elements) {
  return ModelError(of_tensor(tensor) + "cannot set " + std::to_string(wanted) +
                    " elements to zero: it has " + std::to_string(elements));
}

ModelError no_skeleton() { return ModelError("the stored graph is no ONNX model"); }

ModelError unfilled_weight(std::string_view name) {
  return ModelError("weight " + in_quotes(name) + " of the stored graph has no elements");
}

UnsupportedError not_writable(std::string_view what, std::string_view why) {
  return UnsupportedError(in_quotes(what) + " " + std::string(why) +
                          ": it cannot be written as an ONNX model of its own");
}

namespace {

std::string where_called(std::string_view line) {
  return line.empty() ? std::string() : ", called in " + std::string(line);
}

}  // namespace

UnsupportedError no_counterpart(std::string_view call, std::string_view node,
                                std::string_view line) {
  return UnsupportedError("node " + in_quotes(node) + " cannot be exported: " + std::string(call) +
                          " has no known counterpart in ONNX" + where_called(line) +
                          ". Write the line with the operators that docs/guide/export.md lists");
}

UnsupportedError undecided(std::string_view call, std::string_view line) {
  return UnsupportedError(std::string(call) +
                          " cannot be exported: its control flow depends on data" +
                          where_called(line) +
                          ". Trace the module (torch.jit.trace) on an input that takes the branch "
                          "you want, and export the trace");
}

UnsupportedError has_effect(std::string_view call, std::string_view line) {
  return UnsupportedError(
      std::string(call) +
      " cannot be exported: it writes into a tensor or an attribute that is visible elsewhere" +
      where_called(line) +
      ". Return the new tensor instead, and let state be an input and an "
      "output of \"forward\"");
}

UnsupportedError not_lowered(std::string_view op, std::string_view node, std::string_view why) {
  return UnsupportedError("node " + in_quotes(node) + " cannot be exported: " + std::string(op) +
                          ": " + std::string(why));
}

UnsupportedError batch_is_fixed(std::string_view why) {
  return UnsupportedError("the batch cannot be left open: " + std::string(why) +
                          ". Write -1 where the program writes that size down, as a trace of C++ "
                          "code does with x.size(0), or export with the batch that is wanted");
}

UnsupportedError too_large_for_one_file(int64_t bytes) {
  return UnsupportedError("the model needs " + std::to_string(bytes) +
                          " bytes, an ONNX file holds 2147483647");
}

ConfigError bad_output_names(size_t given, size_t wanted) {
  return ConfigError(std::to_string(given) + " names of outputs were given, the network has " +
                     std::to_string(wanted));
}

ModelError checker_says(std::string_view why) {
  return ModelError("the ONNX model that was made is refused by ONNX's checker: " +
                    std::string(why));
}

UnsupportedError other_channels(std::string_view tensor) {
  return UnsupportedError(
      "tensor \"" + std::string(tensor) +
      "\" loses other elements than channels that were found without the "
      "options of the pruning, so that operators that mix them cannot be masked");
}

UnsupportedError not_gathered(std::string_view node) {
  return UnsupportedError(
      "node \"" + std::string(node) +
      "\" depends on channels of which some are absent, in a form that cannot be "
      "masked in a file");
}

UnsupportedError own_operator_mixes(std::string_view op) {
  return UnsupportedError("operator " + std::string(op) +
                          ": it mixes channels, and which results belong to those removed is not "
                          "known");
}

UnsupportedError old_opset(int found, int wanted) {
  return UnsupportedError("operators that mix channels are masked from opset " +
                          std::to_string(wanted) + " on, not in opset " + std::to_string(found));
}

}  // namespace parsimony::onnx_io::errors
