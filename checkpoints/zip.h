// Zip archives as PyTorch writes them: entries stored without compression, so that a tensor can be
// used where it lies in the mapped file.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "parsimony/base/files.h"

namespace parsimony {

struct ZipEntry {
  std::string name;
  uint16_t method = 0;  ///< 0: stored, 8: deflated
  uint32_t crc = 0;
  uint64_t packed = 0;  ///< bytes in the archive
  uint64_t size = 0;    ///< bytes of the content
  uint64_t header = 0;  ///< offset of the local header
};

/// An archive in memory, with the 64-bit extension; it refers to `bytes`.
class ZipReader {
 public:
  /// @throws ModelError, naming the offset, if the directory at the end is absent or inconsistent
  ZipReader(std::string_view bytes, std::string file_name);
  ZipReader(ZipReader&&) = default;  // names refer to entries

  const std::vector<ZipEntry>& entries() const { return entries_; }
  const ZipEntry* find(std::string_view name) const;  ///< null if there is none

  /// The content of an entry: in place if it is stored, else inflated once and kept.
  /// @throws ModelError if it is damaged, or expands like a zip bomb
  std::string_view content(const ZipEntry& entry) const;

 private:
  std::string_view data(const ZipEntry& entry) const;

  std::string_view bytes_;
  std::string file_name_;
  std::vector<ZipEntry> entries_;
  std::unordered_map<std::string_view, const ZipEntry*> by_name_;
  mutable std::deque<std::pair<const ZipEntry*, std::string>> inflated_;
};

/// Appends entries to a new file, stored and aligned to 64 bytes.
///
///     ZipWriter zip(file);
///     zip.begin("archive/data/0", bytes.size());
///     zip.write(bytes);
///     zip.finish();
class ZipWriter {
 public:
  explicit ZipWriter(NewFile& file) : file_(file) {}

  /// Begins an entry of exactly `size` bytes, which may be written in pieces. @throws IoError
  void begin(const std::string& name, uint64_t size);
  void write(std::string_view bytes);
  void add(const std::string& name, std::string_view bytes);
  /// Writes the directory; the last call before NewFile::commit. @throws IoError
  void finish();

 private:
  void open_entry(const std::string& name, uint64_t size, uint32_t crc);
  void close_entry();
  void put(std::string_view bytes);
  void flush();

  NewFile& file_;
  std::string buffer_;  ///< the end of what was put
  uint64_t at_ = 0;
  bool in_pieces_ = false;  ///< the last entry's CRC is not in its header yet
  std::vector<ZipEntry> entries_;
};

}  // namespace parsimony
