// A file of a data set, decompressed if necessary.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace parsimony {

struct DataFile {
  std::string path;
  std::string bytes;  ///< decompressed

  int64_t size() const { return static_cast<int64_t>(bytes.size()); }
  std::span<const std::byte> part(int64_t offset, int64_t length) const {
    return std::as_bytes(std::span(bytes)).subspan(offset, length);
  }
  uint8_t byte(int64_t offset) const { return static_cast<uint8_t>(bytes[offset]); }
  int64_t little_endian(int64_t offset, int64_t count) const {
    int64_t value = 0;
    for (int64_t i = count - 1; i >= 0; --i) value = value << 8 | byte(offset + i);
    return value;
  }
};

/// Reads `path`, and decompresses it if its name ends in .gz.
/// @throws IoError; ModelError for damaged gzip data, with the byte of the compressed file
DataFile read_data_file(const std::string& path);

/// `path` if there is such a file, otherwise `path`.gz if there is that one.
std::optional<std::string> plain_or_gzip(const std::string& path);

/// The lines of a text file that are not empty; nothing if there is no such file.
std::vector<std::string> lines_of(const std::string& path);

}  // namespace parsimony
