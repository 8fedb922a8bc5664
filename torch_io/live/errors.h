// Error texts of live modules and their optimizers.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "parsimony/base/errors.h"
#include "parsimony/torch_io/live/module_editor.h"

namespace parsimony::torch_io::live::errors {

ModelError no_such_tensor(std::string_view name, std::span<const std::string> known);
/// A tensor with two names for which the plan disagrees.
ModelError shared_differs(std::string_view name, std::string_view other);
ModelError too_many_zeros(std::string_view name, int64_t count, int64_t elements);
UnsupportedError cannot_copy(std::string_view name, std::string_view of);

ModelError bad_attribute(std::string_view module, std::string_view attribute, std::string_view why);
ModelError attribute_differs(std::string_view module, std::string_view attribute,
                             std::string_view given, std::string_view found);
ModelError wrong_shape(std::string_view tensor, std::span<const int64_t> wanted,
                       std::span<const int64_t> found);
UnsupportedError uneven_parts(std::string_view tensor, std::string_view parts,
                              std::span<const int64_t> kept);
UnsupportedError not_possible(std::string_view module, std::string_view kind, std::string_view why);

/// The module fails to run after the edit because its forward contains the old sizes. `why` is
/// libtorch's message.
UnsupportedError forward_is_fixed(std::span<const ForwardConstant> constants, std::string_view why);

UnsupportedError unknown_optimizer(std::span<const std::string_view> known);
UnsupportedError unknown_state(std::string_view parameter, std::string_view optimizer);
ModelError not_optimized(std::string_view parameter);
ModelError state_does_not_fit(std::string_view parameter, std::span<const int64_t> state,
                              std::span<const int64_t> parameter_shape);

}  // namespace parsimony::torch_io::live::errors
