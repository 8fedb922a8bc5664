// A folder for files that are only to be measured. Private to training/run.
#pragma once

#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <string>
#include <system_error>

#include "parsimony/base/errors.h"

namespace parsimony::training {

/// Goes away with all that is in it.
class TemporaryFolder {
 public:
  /// `place` empty: a new name among the system's temporary files.
  explicit TemporaryFolder(const std::string& place)
      : path_(place.empty() ? std::filesystem::temp_directory_path() / unused_name()
                            : std::filesystem::path(place)) {
    std::error_code error;
    std::filesystem::remove_all(path_, error);  // of a process that was killed
    std::filesystem::create_directory(path_, error);
    if (error) throw parsimony::errors::cannot_write(path_.string(), error.value());
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }
  int64_t bytes() const {
    int64_t sum = 0;
    for (const std::filesystem::directory_entry& file :
         std::filesystem::directory_iterator(path_)) {
      sum += static_cast<int64_t>(file.file_size());
    }
    return sum;
  }

 private:
  static std::string unused_name() {
    return "parsimony-" + std::to_string(getpid()) + "-" +
           std::to_string(std::chrono::steady_clock::now().time_since_epoch().count());
  }

  std::filesystem::path path_;
};

}  // namespace parsimony::training
