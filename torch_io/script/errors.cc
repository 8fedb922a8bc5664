#include <c10/util/Exception.h>

#include "parsimony/torch_io/script/errors_impl.h"

namespace parsimony::torch_io::script {

std::string first_line(const std::exception& error) {
  const auto* own = dynamic_cast<const c10::Error*>(&error);
  const std::string text = own == nullptr ? error.what() : own->what_without_backtrace();
  const size_t begin = text.find_first_not_of('\n');
  return begin == std::string::npos ? "" : text.substr(begin, text.find('\n', begin) - begin);
}

namespace errors {

ModelError not_torchscript(std::string_view path, std::string_view why) {
  return ModelError(std::string(path) + ": not a TorchScript model: " + std::string(why));
}

ModelError not_read(std::string_view path) {
  return ModelError(std::string(path) + ": nothing was read that could be edited");
}

ModelError cannot_read(std::string_view why) {
  return ModelError("the module cannot be read: " + std::string(why));
}

ModelError no_forward() { return ModelError("the module has no method \"forward\""); }

ModelError unknown_result(std::string_view value) {
  return ModelError("the result " + in_quotes(value) +
                    " of \"forward\" is not a tensor, nor a tuple, " +
                    "list or dictionary of tensors that can be followed");
}

ModelError no_tensor_results() { return ModelError("\"forward\" returns no tensor"); }

ConfigError missing_input(std::string_view name, size_t position, size_t given) {
  return ConfigError("TorchScript does not say what shape its inputs have: \"forward\" takes " +
                     in_quotes(name) + " as input " + std::to_string(position + 1) + ", but " +
                     std::to_string(given) + " were given; wanted for example 1x3x32x32");
}

UnsupportedError no_such_type_of_input(std::string_view name, std::string_view type) {
  return UnsupportedError("input " + in_quotes(name) + " of \"forward\" is of type " +
                          std::string(type) +
                          "; only tensors and numbers can be given to it, and tuples, lists "
                          "and dictionaries of them");
}

ConfigError input_needs_value(std::string_view name) {
  return ConfigError("input " + in_quotes(name) +
                     " of \"forward\" is a number; wanted for example :int64=16000 or "
                     ":float32=0.5");
}

ConfigError too_many_inputs(size_t given, size_t wanted) {
  return ConfigError(std::to_string(given) + " inputs were given, but \"forward\" takes " +
                     std::to_string(wanted));
}

ModelError unknown_node(std::string_view key) {
  return ModelError("there is no node " + in_quotes(key));
}

ModelError unknown_tensor(std::string_view name) {
  return ModelError("there is no tensor " + in_quotes(name));
}

ModelError name_taken(std::string_view name) {
  return ModelError("the name " + in_quotes(name) + " is taken");
}

ModelError no_such_input(std::string_view node, int input, int inputs) {
  return ModelError("node " + in_quotes(node) + " has no input " + std::to_string(input) +
                    ", only " + std::to_string(inputs));
}

UnsupportedError not_written(std::string_view node, std::string_view what) {
  return UnsupportedError("node " + in_quotes(node) + ": " + std::string(what) +
                          " is not written in the program as a number that could be changed");
}

UnsupportedError shared_place(std::string_view node, std::string_view what) {
  return UnsupportedError("node " + in_quotes(node) + ": " + std::string(what) +
                          " stands in a loop, and its rounds want different numbers");
}

UnsupportedError no_scale(std::string_view node) {
  return UnsupportedError("node " + in_quotes(node) +
                          ": this version's attention derives its scale from a width that would " +
                          "change, and takes no other");
}

UnsupportedError cannot_edit(std::string_view why) {
  return UnsupportedError("the module cannot be edited: " + std::string(why));
}

UnsupportedError not_onnx(std::string_view path, std::string_view engine) {
  return UnsupportedError(std::string(engine) + " runs ONNX files only, and " + std::string(path) +
                          " is none");
}

VerificationError not_read_back(std::string_view why) {
  return VerificationError("verification failed: the small program cannot be read back: " +
                           std::string(why) + ". Nothing was changed or written.");
}

}  // namespace errors
}  // namespace parsimony::torch_io::script
