// Error texts that several files of graph/ and those above it share.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "parsimony/base/errors.h"

namespace parsimony::errors {

ModelError shape_mismatch(std::string_view node, std::string_view what, std::string_view expected,
                          std::string_view found);
ModelError missing_tensor(std::string_view node, std::string_view tensor);
/// The plan belongs to another network; `kind` is "node" or "tensor".
ModelError not_in_model(std::string_view kind, std::string_view name);
ModelError produced_twice(std::string_view node, std::string_view tensor);
ModelError nan_weight(std::string_view tensor, int64_t index);
ModelError bad_attribute(std::string_view node, std::string_view attribute, std::string_view why);
UnsupportedError not_numbers(std::string_view tensor, std::string_view dtype);
/// A rule that a user adds.
ConfigError known_operator(std::string_view domain, std::string_view op);
/// --input.
ConfigError too_many_inputs(size_t given, size_t expected);
/// New elements for a tensor.
ModelError wrong_bytes(std::string_view tensor, int64_t expected, int64_t given);

}  // namespace parsimony::errors
