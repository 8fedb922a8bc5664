// An owning file descriptor, the hash of a file, and atomic replacement of files.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace parsimony::onnx_io {

class FileDescriptor {
 public:
  FileDescriptor() = default;
  explicit FileDescriptor(int fd) : fd_(fd) {}
  ~FileDescriptor();
  FileDescriptor(FileDescriptor&& other) noexcept : fd_(other.release()) {}
  FileDescriptor& operator=(FileDescriptor&& other) noexcept;

  int get() const { return fd_; }
  int release();

 private:
  int fd_ = -1;
};

struct OpenFile {
  FileDescriptor fd;
  int64_t size = 0;
  dev_t device = 0;
  ino_t inode = 0;
};

/// @throws IoError if `path` cannot be opened or is not a regular file.
OpenFile open_for_reading(const std::string& path);

/// Reads up to `buffer.size()` bytes at `offset`; fewer at the end of the file only.
/// @throws IoError
size_t read_at(const OpenFile& file, const std::string& path, int64_t offset,
               std::span<std::byte> buffer);

/// Writes to a temporary file next to the target. `commit` renames it to the target; otherwise the
/// destructor removes it. The target is never incomplete.
class OutputFile {
 public:
  /// @throws IoError
  explicit OutputFile(const std::string& path);
  ~OutputFile();
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  int fd() const { return fd_.get(); }
  int64_t position() const { return position_; }

  /// @throws IoError if the disk is full.
  void write(const std::byte* data, int64_t bytes);
  /// Writes zeros up to the next multiple of `alignment`.
  void align(int64_t alignment);
  /// Writes all bytes of `source`.
  void copy_from(const OpenFile& source, const std::string& source_path);
  /// Closes the file; reports delayed write errors. @throws IoError
  void close();
  /// @throws IoError
  void commit();
  [[noreturn]] void fail(int error_number) const;

 private:
  std::string path_;
  std::string temporary_;
  FileDescriptor fd_;
  int64_t position_ = 0;
  bool committed_ = false;
};

/// Returns the SHA-256 of the file in lower-case hexadecimal. Reads by position, in small blocks.
/// @throws IoError
std::string sha256_of(const OpenFile& file, const std::string& path);

}  // namespace parsimony::onnx_io
