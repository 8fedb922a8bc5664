// Error texts of the configs room. `place` is file, entry and key: "cnn.json:
// config_list[2].op_types".
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "parsimony/base/errors.h"
#include "parsimony/base/json_reader.h"

namespace parsimony::errors {

ConfigError wrong_type(std::string_view place, std::string_view found, std::string_view wanted);
/// Supported by NNI, but meaningless for channel pruning.
UnsupportedError refused(std::string_view place, std::string_view why);
ConfigError unknown_word(std::string_view place, std::string_view word,
                         std::span<const std::string_view> known);
/// Of --loss.
ConfigError bad_loss(std::string_view text, std::span<const std::string_view> known);
ConfigError out_of_range(std::string_view place, std::string_view value, std::string_view range);
ConfigError contradiction(std::string_view place, std::string_view why);

ConfigError unknown_type(std::string_view place, std::string_view type,
                         std::span<const std::string> known);
ConfigError absent_type(std::string_view place, std::string_view type,
                        std::span<const std::string> present);
ConfigError unknown_name(std::string_view place, std::string_view name,
                         std::span<const std::string> known);
ConfigError not_a_layer(std::string_view place, std::string_view name, std::string_view op);
ConfigError bad_pattern(std::string_view place, std::string_view pattern, std::string_view why);
ConfigError unmatched_pattern(std::string_view place, std::string_view pattern);
ConfigError unmatched_part(std::string_view place, std::string_view part);
ConfigError selects_nothing(std::string_view place);

/// Latency tables that were measured under other conditions.
ConfigError other_latency(std::string_view file, std::string_view key, std::string_view found,
                          std::string_view wanted);
ConfigError bad_latency_table(std::string_view place);

}  // namespace parsimony::errors
