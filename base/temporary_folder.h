// A folder for files that are needed for a while.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

namespace parsimony {

/// Removes the folder with its contents.
class TemporaryFolder {
 public:
  /// At `path`, in place of what is there; empty: under a new name among the system's temporary
  /// files. @throws IoError
  explicit TemporaryFolder(const std::string& path = {});
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }
  /// Of the files in it.
  int64_t bytes() const;

 private:
  std::filesystem::path path_;
};

}  // namespace parsimony
