#include "parsimony/data/input_source.h"

#include <algorithm>
#include <cctype>
#include <filesystem>

#include "parsimony/data/errors.h"

namespace parsimony {

namespace fs = std::filesystem;

bool ends_like(std::string_view name, std::span<const std::string_view> endings) {
  return std::ranges::any_of(endings, [&](std::string_view ending) {
    return name.size() >= ending.size() &&
           std::ranges::equal(
               name.substr(name.size() - ending.size()), ending,
               [](unsigned char found, char wanted) { return std::tolower(found) == wanted; });
  });
}

std::vector<std::string> files_at(const std::string& path,
                                  std::span<const std::string_view> endings) {
  std::error_code failed;
  if (fs::is_regular_file(path, failed)) return {path};
  std::vector<std::string> found;
  fs::recursive_directory_iterator at(path, fs::directory_options::follow_directory_symlink,
                                      failed);
  for (; !failed && at != fs::recursive_directory_iterator(); at.increment(failed)) {
    const std::string name = at->path().filename().string();
    if (name.starts_with('.')) {
      at.disable_recursion_pending();
      continue;
    }
    std::error_code ignored;
    if (ends_like(name, endings) && at->is_regular_file(ignored))
      found.push_back(at->path().string());
  }
  if (failed) throw errors::cannot_list(path, failed.message());
  std::ranges::sort(found);
  return found;
}

}  // namespace parsimony
