#include "parsimony/torch_io/executor/errors.h"

#include "parsimony/base/types.h"

namespace parsimony::executor {

const std::string& label(const Node& node) { return node.name.empty() ? node.op : node.name; }

namespace errors {
namespace {

std::string quoted(const Node& node) {
  const std::string op = node.domain.empty() ? node.op : node.domain + "." + node.op;
  return "node \"" + label(node) + "\" (" + op + ", version " + std::to_string(node.opset) + ")";
}

}  // namespace

UnsupportedError cannot_run(const Node& node, std::string_view why) {
  return UnsupportedError(quoted(node) + " cannot be run by libtorch here: " + std::string(why));
}

UnsupportedError cannot_mask(const Node& node) {
  return UnsupportedError(quoted(node) + " cannot be run on operands of which channels are absent");
}

ModelError run_failed(const Node& node, std::string_view why) {
  return ModelError(quoted(node) + ": " + std::string(why));
}

ModelError wrong_inputs(size_t wanted, size_t found) {
  return ModelError("the network has " + std::to_string(wanted) + " inputs, found " +
                    std::to_string(found) + " tensors");
}

ModelError undefined_input(std::string_view input) {
  return ModelError("the tensor for input \"" + std::string(input) + "\" is undefined");
}

ModelError no_such_weight(std::string_view weight) {
  return ModelError("the network has no weight \"" + std::string(weight) + "\"");
}

ModelError no_such_block(std::string_view add) {
  return ModelError("the network has no addition of two operands \"" + std::string(add) +
                    "\" whose block could be removed");
}

UnsupportedError updates(std::string_view weight) {
  return UnsupportedError("the plan changes \"" + std::string(weight) +
                          "\" but lacks its new values");
}

ModelError slice_does_not_fit(std::string_view weight, int axis, int64_t size, const Shape& found) {
  return ModelError("the plan cuts axis " + std::to_string(axis) + " of \"" + std::string(weight) +
                    "\", of size " + std::to_string(size) + "; the weight's shape is " +
                    to_string(found));
}

}  // namespace errors
}  // namespace parsimony::executor
