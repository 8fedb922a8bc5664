#include "parsimony/base/cache_folder.h"

#include <cstdlib>
#include <string>

namespace parsimony {
namespace {

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

}  // namespace

std::filesystem::path cache_folder() {
  namespace fs = std::filesystem;
  if (const std::string own = variable("PARSIMONY_CACHE"); !own.empty()) return own;
  const std::string shared = variable("XDG_CACHE_HOME");
  return (shared.empty() ? fs::path(variable("HOME")) / ".cache" : fs::path(shared)) / "parsimony";
}

}  // namespace parsimony
