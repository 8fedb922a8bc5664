#include "parsimony/api/data/files.h"

#include <algorithm>
#include <cctype>
#include <filesystem>

#include "parsimony/api/errors.h"

namespace parsimony {

namespace fs = std::filesystem;

namespace {

/// `ending` is in lower case.
bool ends_like(std::string_view name, std::string_view ending) {
  if (name.size() < ending.size()) return false;
  return std::ranges::equal(
      name.substr(name.size() - ending.size()), ending,
      [](unsigned char found, char wanted) { return std::tolower(found) == wanted; });
}

}  // namespace

std::vector<std::string> files_at(const std::string& path,
                                  std::initializer_list<std::string_view> endings) {
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
    const bool wanted =
        std::ranges::any_of(endings, [&](std::string_view e) { return ends_like(name, e); });
    std::error_code ignored;
    if (wanted && at->is_regular_file(ignored)) found.push_back(at->path().string());
  }
  if (failed) throw errors::cannot_list(path, failed.message());
  std::ranges::sort(found);
  return found;
}

}  // namespace parsimony
