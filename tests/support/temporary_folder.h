#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace parsimony::test {

/// A folder that goes away with the object; in memory where that is possible, as every model that
/// is written is flushed to the disk.
class TemporaryFolder {
 public:
  TemporaryFolder();
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  std::string operator/(std::string_view name) const { return (path_ / name).string(); }
  /// Names of what lies in the folder, sorted.
  std::vector<std::string> names() const;

 private:
  std::filesystem::path path_;
};

}  // namespace parsimony::test
