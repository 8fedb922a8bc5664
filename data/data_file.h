// Files of samples, decompressed if necessary, and their folders.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace parsimony {

/// The bytes of a file, mapped into memory; decompressed if its name ends in .gz.
class DataFile {
 public:
  /// @throws IoError; ModelError for damaged gzip data, with the byte of the compressed file
  explicit DataFile(std::string path);

  const std::string& path() const { return path_; }
  std::string_view bytes() const { return bytes_; }

  int64_t size() const { return static_cast<int64_t>(bytes_.size()); }
  std::span<const std::byte> part(int64_t offset, int64_t length) const {
    return std::as_bytes(std::span(bytes_)).subspan(offset, length);
  }
  uint8_t byte(int64_t offset) const { return static_cast<uint8_t>(bytes_[offset]); }

 private:
  std::string path_;
  std::shared_ptr<const void> owner_;  ///< of the bytes
  std::string_view bytes_;
};

/// Returns `path` or `path`.gz, whichever exists first.
std::optional<std::string> plain_or_gzip(const std::string& path);

/// Returns the non-empty lines of a text file; nothing if it does not exist.
std::vector<std::string> lines_of(const std::string& path);

/// Returns whether the name has one of these lower-case extensions, ignoring case.
bool ends_like(std::string_view name, std::span<const std::string_view> endings);

/// Returns the file at `path`, or all regular files below that folder with these extensions,
/// ignoring case, sorted and without hidden files. @throws IoError
std::vector<std::string> files_at(const std::string& path,
                                  std::span<const std::string_view> endings);

/// Returns the names of the files, or of the folders, in a folder, sorted and without hidden ones.
/// @throws IoError
std::vector<std::string> names_in(const std::string& folder, bool folders);

}  // namespace parsimony
