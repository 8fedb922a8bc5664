#include "parsimony/api/installed.h"

namespace parsimony {

namespace fs = std::filesystem;

fs::path installed_file(const std::string& name) {
  std::error_code error;
  const fs::path program = fs::read_symlink("/proc/self/exe", error);
  const fs::path beside =
      (program.parent_path() / PARSIMONY_COMPONENT_FROM_BIN / name).lexically_normal();
  const fs::path installed = fs::path(PARSIMONY_COMPONENT_FOLDER) / name;
  return !fs::exists(beside, error) && fs::exists(installed, error) ? installed : beside;
}

}  // namespace parsimony
