// Error texts of .pt2 files.
#pragma once

#include <string>
#include <string_view>

#include "parsimony/base/errors.h"

namespace parsimony::torch_io::exported::errors {

ModelError not_exported(std::string_view path, std::string_view why);
ModelError bad_tensor(std::string_view path, std::string_view name, std::string_view why);
ModelError unknown_name(std::string_view place, std::string_view name);
ModelError no_tensor(std::string_view path, std::string_view name);
UnsupportedError no_input(std::string_view name, std::string_view kind);
UnsupportedError cannot_write(std::string_view node, std::string_view why);

}  // namespace parsimony::torch_io::exported::errors
