// Error texts of speedup/.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "parsimony/base/errors.h"

namespace parsimony::errors {

ConfigError plan_sizes_differ(std::string_view tensor, int axis, int64_t first, int64_t second);
ConfigError plan_keeps_nothing(std::string_view tensor, int axis);
/// The plan says that values change, but does not contain them.
UnsupportedError plan_updates(std::string_view tensor);
/// The file of values beside a plan is missing, lacks a tensor, or has a different one.
IoError no_values(std::string_view plan, std::string_view why);
ConfigError values_lack(std::string_view file, std::string_view tensor);
ConfigError values_differ(std::string_view file, std::string_view tensor, std::string_view found,
                          std::string_view wanted);
/// A mask of a tensor that the model does not have.
ModelError no_tensor_to_mask(std::string_view tensor, const std::vector<std::string>& known);
UnsupportedError plan_cannot_say(std::string_view what, std::string_view why);
/// Second moments are [in, in], cross moments [out, in].
ModelError sums_do_not_fit(int64_t rows, int64_t columns, int64_t cross_columns);
ModelError sums_not_finite();
/// `place` is where it was given: "--recover".
ConfigError unknown_recovery(std::string_view text, std::string_view place,
                             std::span<const std::string> known);

}  // namespace parsimony::errors
