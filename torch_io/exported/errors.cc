#include "parsimony/torch_io/exported/errors_impl.h"

namespace parsimony::torch_io::exported::errors {

ModelError not_exported(std::string_view path, std::string_view why) {
  return ModelError(std::string(path) + ": not a program of torch.export: " + std::string(why));
}

ModelError bad_tensor(std::string_view path, std::string_view name, std::string_view why) {
  return ModelError(std::string(path) + ": tensor " + in_quotes(name) + ": " + std::string(why));
}

ModelError unknown_name(std::string_view place, std::string_view name) {
  return ModelError(std::string(place) + ": nothing before it is called " + in_quotes(name));
}

ModelError no_tensor(std::string_view path, std::string_view name) {
  return ModelError(std::string(path) + ": the program reads " + in_quotes(name) +
                    ", which the archive does not hold");
}

UnsupportedError no_input(std::string_view name, std::string_view kind) {
  return UnsupportedError("input " + in_quotes(name) + " is " + std::string(kind) +
                          "; only tensors and integers can be given to the program");
}

UnsupportedError cannot_write(std::string_view node, std::string_view why) {
  return UnsupportedError("node " + in_quotes(node) + " of the program: " + std::string(why));
}

}  // namespace parsimony::torch_io::exported::errors
