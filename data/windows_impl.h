// Long sequences, cut into windows.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "parsimony/base/errors.h"
#include "parsimony/engines/network.h"
#include "parsimony/graph/graph.h"

namespace parsimony {

/// What an input takes of one sample: all axes behind the first are 1, except for the last, which
/// is of this length where the input leaves it open.
/// @param option  says how long a window is, for the message. @throws ConfigError
Shape window_of(const Value& input, std::optional<int64_t> length, std::string_view option);

/// [count, ..window], to be filled.
TensorBytes empty_rows(DType dtype, const Shape& window, int64_t count);

/// A file of fewer elements than one window has.
ConfigError too_short(std::string_view file, int64_t found, int64_t wanted);

}  // namespace parsimony
