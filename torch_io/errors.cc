#include "parsimony/torch_io/errors.h"

#include "parsimony/base/types.h"

namespace parsimony::torch_io::errors {
namespace {

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

ModelError no_forward() { return ModelError("the module has no method \"forward\""); }

ModelError unknown_tensor(std::string_view name) {
  return ModelError("there is no tensor ", in_quotes(name));
}

UnsupportedError shared_place(std::string_view node, std::string_view what) {
  return UnsupportedError("node ", in_quotes(node), ": ", what,
                          " is in a loop, whose iterations require different values");
}

std::string of_module(std::string_view path) {
  return path.empty() ? std::string("the module: ") : "module " + in_quotes(path) + ": ";
}

ModelError bad_attribute(std::string_view module, std::string_view attribute,
                         std::string_view why) {
  return ModelError(of_module(module), "attribute ", in_quotes(attribute), ": ", why);
}

UnsupportedError uneven_parts(std::string_view tensor, std::string_view parts,
                              std::span<const int64_t> kept) {
  return UnsupportedError("tensor ", in_quotes(tensor), ": all ", parts,
                          " must keep the same number of indices, found ",
                          to_string(Shape(kept.begin(), kept.end())));
}

UnsupportedError not_possible(std::string_view module, std::string_view kind,
                              std::string_view why) {
  return UnsupportedError(of_module(module), kind, " cannot be pruned like this: ", why);
}

UnsupportedError forward_is_fixed(std::span<const ForwardConstant> constants,
                                  std::string_view why) {
  std::string text = str_cat("the module does not run with its new sizes: ", why);
  if (constants.empty()) return UnsupportedError(text);
  text += "\nIts forward contains hard-coded sizes:";
  for (const ForwardConstant& constant : constants) text += "\n  " + described(constant);
  return UnsupportedError(text, "\nUse -1 for such a size, or flatten");
}

}  // namespace parsimony::torch_io::errors
