#include "parsimony/torch_io/live/errors.h"

#include "parsimony/base/types.h"

namespace parsimony::torch_io::live::errors {
namespace {

std::string of_tensor(std::string_view tensor) { return "tensor " + in_quotes(tensor) + ": "; }

std::string of_parameter(std::string_view name) { return "parameter " + in_quotes(name) + ": "; }

std::string of_module(std::string_view path) {
  return path.empty() ? std::string("the module: ") : "module " + in_quotes(path) + ": ";
}

std::string shape_text(std::span<const int64_t> dims) {
  return to_string(Shape(dims.begin(), dims.end()));
}

std::string numbers(const HostTensor& constant) {
  std::string text = "[";
  for (int64_t i = 0; i < constant.count(); ++i) {
    if (i > 0) text += ", ";
    text +=
        constant.floating() ? std::to_string(constant.number(i)) : std::to_string(constant.ints[i]);
  }
  return text + "]";
}

std::string described(const ForwardConstant& constant) {
  std::string text = in_quotes(constant.node);
  if (!constant.what.empty()) {
    text += " " + constant.what;
  } else if (constant.input >= 0) {
    text += " operand " + std::to_string(constant.input);
  }
  if (constant.from) text += " from " + numbers(*constant.from);
  return text + " to " + numbers(constant.to);
}

}  // namespace

ModelError no_such_tensor(std::string_view name, std::span<const std::string> known) {
  return ModelError("the module has no parameter or buffer " + in_quotes(name) + "." +
                    did_you_mean(name, known));
}

ModelError shared_differs(std::string_view name, std::string_view other) {
  return ModelError(of_tensor(name) + "it is also registered as " + in_quotes(other) +
                    ", of which other indices are to stay");
}

ModelError too_many_zeros(std::string_view name, int64_t count, int64_t elements) {
  return ModelError(of_tensor(name) + "wanted 0 to " + std::to_string(elements) + " zeros, found " +
                    std::to_string(count));
}

UnsupportedError cannot_copy(std::string_view name, std::string_view of) {
  return UnsupportedError(of_tensor(of) +
                          "two layers share it and each would keep a part of its own (" +
                          in_quotes(name) +
                          "); a module's parameters cannot be separated from "
                          "outside: register one for each layer");
}

ModelError bad_attribute(std::string_view module, std::string_view attribute,
                         std::string_view why) {
  return ModelError(of_module(module) + "attribute " + in_quotes(attribute) + ": " +
                    std::string(why));
}

ModelError attribute_differs(std::string_view module, std::string_view attribute,
                             std::string_view given, std::string_view found) {
  return ModelError(of_module(module) + std::string(attribute) + " is to be " + std::string(given) +
                    ", but its tensors have " + std::string(found));
}

ModelError wrong_shape(std::string_view tensor, std::span<const int64_t> wanted,
                       std::span<const int64_t> found) {
  return ModelError(of_tensor(tensor) + "does not fit its layer: wanted " + shape_text(wanted) +
                    ", found " + shape_text(found));
}

UnsupportedError uneven_parts(std::string_view tensor, std::string_view parts,
                              std::span<const int64_t> kept) {
  return UnsupportedError(of_tensor(tensor) + "all " + std::string(parts) +
                          " must keep equally many indices, found " + shape_text(kept));
}

UnsupportedError not_possible(std::string_view module, std::string_view kind,
                              std::string_view why) {
  return UnsupportedError(of_module(module) + std::string(kind) +
                          " cannot be cut like this: " + std::string(why));
}

UnsupportedError forward_is_fixed(std::span<const ForwardConstant> constants,
                                  std::string_view why) {
  std::string text = "the module does not run with its new sizes: " + std::string(why);
  if (constants.empty()) return UnsupportedError(text);
  text += "\nIts forward is written for sizes that cannot be changed from outside:";
  for (const ForwardConstant& constant : constants) text += "\n  " + described(constant);
  return UnsupportedError(text + "\nWrite -1 for such a size, or use flatten");
}

UnsupportedError unknown_optimizer(std::span<const std::string_view> known) {
  std::string text = "the optimizer is of a type whose state is not known; known are";
  for (size_t i = 0; i < known.size(); ++i) {
    text += (i == 0 ? " " : i + 1 == known.size() ? " and " : ", ") + std::string(known[i]);
  }
  return UnsupportedError(text);
}

UnsupportedError unknown_state(std::string_view parameter, std::string_view optimizer) {
  return UnsupportedError(of_parameter(parameter) + "its state is not that of " +
                          std::string(optimizer));
}

ModelError not_optimized(std::string_view parameter) {
  return ModelError(of_parameter(parameter) + "the optimizer does not hold it");
}

ModelError state_does_not_fit(std::string_view parameter, std::span<const int64_t> state,
                              std::span<const int64_t> parameter_shape) {
  return ModelError(of_parameter(parameter) + "the optimizer's state is of shape " +
                    shape_text(state) + ", which neither is the parameter's " +
                    shape_text(parameter_shape) + " nor becomes it by the given slices");
}

}  // namespace parsimony::torch_io::live::errors
