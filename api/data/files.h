// Files of samples in folders.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

namespace parsimony {

/// The file at `path`, or all regular files below that folder whose names end like that, in any
/// case, sorted; hidden ones are left out. @throws IoError
std::vector<std::string> files_at(const std::string& path,
                                  std::initializer_list<std::string_view> endings);

}  // namespace parsimony
