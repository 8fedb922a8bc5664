// Error texts of graph/.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "parsimony/base/errors.h"

namespace parsimony::errors {

ModelError shape_mismatch(std::string_view node, std::string_view what, std::string_view wanted,
                          std::string_view found);
/// `size` was assumed for the dimensions that the inputs leave open.
ShapeError guess_does_not_fit(const ShapeError& error, int64_t size);
ModelError missing_tensor(std::string_view node, std::string_view tensor);
/// The plan belongs to another network; `kind` is "node" or "tensor".
ModelError not_in_model(std::string_view kind, std::string_view name);
ModelError cycle(std::string_view node);
ModelError produced_twice(std::string_view node, std::string_view tensor);
ModelError nan_weight(std::string_view tensor, int64_t index);
ModelError bad_attribute(std::string_view node, std::string_view attribute, std::string_view why);
UnsupportedError not_numbers(std::string_view tensor, std::string_view dtype);
/// A rule that a user adds.
ConfigError known_operator(std::string_view domain, std::string_view op);
ConfigError bad_rule(std::string_view op, std::string_view why);
/// In a file of rules.
ConfigError bad_rules(std::string_view file, size_t line, size_t column, std::string_view why);
/// Why the dimensions of a node are pinned.
UnsupportedError not_followed(std::string_view why);
/// A size or type of the probe that the file does not allow.
ConfigError wrong_input(std::string_view input, std::string_view has, std::string_view given);
/// --input.
ConfigError too_many_inputs(size_t given, size_t wanted);
/// --states and --free. `what` is "input", "output" or "input or output".
ConfigError no_such_end(std::string_view what, std::string_view name,
                        std::span<const std::string> known);
ConfigError bad_state(std::string_view text);
ConfigError cannot_feed_back(std::string_view state, std::string_view why);
ConfigError bad_free_axis(std::string_view text);
ConfigError open_free_axis(std::string_view text);
/// New elements for a tensor.
ModelError wrong_bytes(std::string_view tensor, int64_t wanted, int64_t given);

}  // namespace parsimony::errors
