// Error messages of torch_io/ that several files throw.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "parsimony/base/errors.h"
#include "parsimony/torch_io/live/module_editor.h"

namespace parsimony::torch_io::errors {

// TorchScript.

ModelError no_forward();
ModelError unknown_tensor(std::string_view name);
UnsupportedError shared_place(std::string_view node, std::string_view what);

// Live modules.

/// "module "conv1": "
std::string of_module(std::string_view path);
ModelError bad_attribute(std::string_view module, std::string_view attribute, std::string_view why);
UnsupportedError uneven_parts(std::string_view tensor, std::string_view parts,
                              std::span<const int64_t> kept);
UnsupportedError not_possible(std::string_view module, std::string_view kind, std::string_view why);
/// The module fails to run after the edit because its forward contains the old sizes. `why` is
/// libtorch's message.
UnsupportedError forward_is_fixed(std::span<const ForwardConstant> constants, std::string_view why);

}  // namespace parsimony::torch_io::errors
