#include "parsimony/base/temporary_folder.h"

#include <stdlib.h>

#include <cerrno>
#include <system_error>

#include "parsimony/base/errors.h"

namespace parsimony {
namespace {

namespace fs = std::filesystem;

fs::path unused() {
  std::string name = (fs::temp_directory_path() / "parsimony-XXXXXX").string();
  if (mkdtemp(name.data()) == nullptr) throw errors::cannot_write(name, errno);
  return name;
}

/// What a process that was killed has left there goes.
fs::path emptied(const fs::path& path) {
  std::error_code error;
  fs::remove_all(path, error);
  fs::create_directory(path, error);
  if (error) throw errors::cannot_write(path.string(), error.value());
  return path;
}

}  // namespace

TemporaryFolder::TemporaryFolder(const std::string& path)
    : path_(path.empty() ? unused() : emptied(path)) {}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

int64_t TemporaryFolder::bytes() const {
  int64_t sum = 0;
  for (const fs::directory_entry& file : fs::directory_iterator(path_)) {
    sum += static_cast<int64_t>(file.file_size());
  }
  return sum;
}

}  // namespace parsimony
