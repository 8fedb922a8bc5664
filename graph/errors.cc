#include "parsimony/graph/errors.h"

#include <string>

namespace parsimony::errors {
namespace {

std::string at_node(std::string_view node) { return "node " + in_quotes(node) + ": "; }

}  // namespace

ModelError shape_mismatch(std::string_view node, std::string_view what, std::string_view wanted,
                          std::string_view found) {
  return ModelError(at_node(node) + "wrong dims: " + std::string(what) + ": wanted " +
                    std::string(wanted) + ", found " + std::string(found));
}

ShapeError guess_does_not_fit(const ShapeError& error, int64_t size) {
  return {error.node(), std::string(error.what()) + "; " + std::to_string(size) +
                            " was taken for sizes of the inputs that the file leaves open, " +
                            "--input gives them"};
}

ModelError missing_tensor(std::string_view node, std::string_view tensor) {
  return ModelError(at_node(node) + "tensor " + in_quotes(tensor) +
                    " is neither a graph input, nor an initializer, nor the output of a node");
}

ModelError not_in_model(std::string_view kind, std::string_view name) {
  return ModelError("the plan changes " + std::string(kind) + " " + in_quotes(name) +
                    ", which the model does not have: it is a plan of another model");
}

ModelError cycle(std::string_view node) {
  return ModelError(at_node(node) + "the graph has a cycle: the node needs its own output");
}

ModelError produced_twice(std::string_view node, std::string_view tensor) {
  return ModelError(at_node(node) + "output " + in_quotes(tensor) +
                    " is already a graph input, an initializer or the output of another node");
}

ModelError nan_weight(std::string_view tensor, int64_t index) {
  return ModelError("tensor " + in_quotes(tensor) + ": element " + std::to_string(index) +
                    " is not a number; channels with such weights cannot be ranked");
}

ModelError bad_attribute(std::string_view node, std::string_view attribute, std::string_view why) {
  return ModelError(at_node(node) + "attribute " + in_quotes(attribute) + ": " + std::string(why));
}

UnsupportedError not_numbers(std::string_view tensor, std::string_view dtype) {
  return UnsupportedError("tensor " + in_quotes(tensor) + ": wanted numbers, found element type " +
                          std::string(dtype));
}

ConfigError known_operator(std::string_view domain, std::string_view op) {
  const std::string name = (domain.empty() ? "" : std::string(domain) + "::") + std::string(op);
  return ConfigError("operator " + in_quotes(name) + " has a rule already");
}

ConfigError bad_rule(std::string_view op, std::string_view why) {
  return ConfigError("rule of " + in_quotes(op) + ": " + std::string(why));
}

ConfigError bad_rules(std::string_view file, size_t line, size_t column, std::string_view why) {
  return ConfigError(std::string(file) + ":" + std::to_string(line) + ":" + std::to_string(column) +
                     ": " + std::string(why));
}

ConfigError too_many_inputs(size_t given, size_t wanted) {
  return ConfigError("--input was given " + std::to_string(given) + " times, but the model has " +
                     std::to_string(wanted) + (wanted == 1 ? " input" : " inputs"));
}

ConfigError no_such_end(std::string_view what, std::string_view name,
                        std::span<const std::string> known) {
  return ConfigError("the network has no " + std::string(what) + " " + in_quotes(name) + "." +
                     did_you_mean(name, known));
}

ConfigError bad_state(std::string_view text) {
  return ConfigError("--states: found " + in_quotes(text) +
                     ", wanted auto or OUTPUT=INPUT, the output that the next run takes as input");
}

ConfigError cannot_feed_back(std::string_view state, std::string_view why) {
  return ConfigError("--states " + std::string(state) +
                     ": the output cannot be fed back: " + std::string(why));
}

ConfigError bad_free_axis(std::string_view text) {
  return ConfigError("--free: found " + in_quotes(text) +
                     ", wanted an input or output, NAME or NAME:AXIS with an axis that it has");
}

ConfigError open_free_axis(std::string_view text) {
  return ConfigError("--free " + std::string(text) +
                     ": the model leaves the size of this axis open, so it has no channels");
}

ModelError wrong_bytes(std::string_view tensor, int64_t wanted, int64_t given) {
  return ModelError("tensor " + in_quotes(tensor) + ": its elements are " + std::to_string(wanted) +
                    " bytes, found " + std::to_string(given));
}

UnsupportedError not_followed(std::string_view why) { return UnsupportedError(std::string(why)); }

ConfigError wrong_input(std::string_view input, std::string_view has, std::string_view given) {
  return ConfigError("input " + in_quotes(input) + " has " + std::string(has) + ", but " +
                     std::string(given) + " was given for it");
}

}  // namespace parsimony::errors
