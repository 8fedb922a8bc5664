#include "parsimony/graph/errors.h"

namespace parsimony::errors {
ModelError shape_mismatch(std::string_view node, std::string_view what, std::string_view expected,
                          std::string_view found) {
  return ModelError("node ", in_quotes(node), ": wrong dims: ", what, ": expected ", expected,
                    ", found ", found);
}

ModelError missing_tensor(std::string_view node, std::string_view tensor) {
  return ModelError("node ", in_quotes(node), ": tensor ", in_quotes(tensor),
                    " is neither a graph input, nor an initializer, nor the output of a node");
}

ModelError not_in_model(std::string_view kind, std::string_view name) {
  return ModelError("the plan changes ", kind, " ", in_quotes(name),
                    ", which the model does not have: it is a plan of another model");
}

ModelError produced_twice(std::string_view node, std::string_view tensor) {
  return ModelError("node ", in_quotes(node), ": output ", in_quotes(tensor),
                    " is already a graph input, an initializer or the output of another node");
}

ModelError nan_weight(std::string_view tensor, int64_t index) {
  return ModelError("tensor ", in_quotes(tensor), ": element ", index,
                    " is not a number; channels with such weights cannot be ranked");
}

ModelError bad_attribute(std::string_view node, std::string_view attribute, std::string_view why) {
  return ModelError("node ", in_quotes(node), ": attribute ", in_quotes(attribute), ": ", why);
}

UnsupportedError not_numbers(std::string_view tensor, std::string_view dtype) {
  return UnsupportedError("tensor ", in_quotes(tensor), ": expected numbers, found element type ",
                          dtype);
}

ConfigError known_operator(std::string_view domain, std::string_view op) {
  const std::string name = domain.empty() ? std::string(op) : str_cat(domain, "::", op);
  return ConfigError("operator ", in_quotes(name), " has a rule already");
}

ConfigError too_many_inputs(size_t given, size_t expected) {
  return ConfigError("--input was given ", given, " times, but the model has ", expected,
                     expected == 1 ? " input" : " inputs");
}

ModelError wrong_bytes(std::string_view tensor, int64_t expected, int64_t given) {
  return ModelError("tensor ", in_quotes(tensor), ": its elements are ", expected, " bytes, found ",
                    given);
}

}  // namespace parsimony::errors
