// Files of samples in folders.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace parsimony {

/// Does the name end like one of these, in any case? They are in lower case.
bool ends_like(std::string_view name, std::span<const std::string_view> endings);

/// The file at `path`, or all regular files below that folder whose names end like that, in any
/// case, sorted; hidden ones are left out. @throws IoError
std::vector<std::string> files_at(const std::string& path,
                                  std::span<const std::string_view> endings);

}  // namespace parsimony
