// Files on disk: read whole, and written so that the old one stays whole until the new one is.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace parsimony {

/// Content of a file. @throws IoError
std::string read_file(const std::string& path);

/// A file whose bytes come into memory when they are looked at, and may leave again. What is no
/// file on a disk, as a pipe, is read whole. It must not become shorter meanwhile.
class MappedFile {
 public:
  /// @throws IoError
  explicit MappedFile(const std::string& path);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  std::string_view bytes() const { return bytes_; }
  /// They need not stay in memory until they are looked at again.
  void release(std::string_view part) const;

 private:
  std::string_view bytes_;
  std::string content_;  ///< of what cannot be mapped
};

/// Does the file begin as a zip archive does, hence as TorchScript? False if it cannot be read.
bool is_zip(const std::string& path);

/// A file that appears under its name only once it is complete. It grows under a temporary name
/// beside the target; commit() renames it, and without commit() nothing remains.
///
///     NewFile file("small.onnx");
///     file.write(bytes);
///     file.commit();
class NewFile {
 public:
  /// @throws IoError if the folder takes no file
  explicit NewFile(std::string path);
  ~NewFile();
  NewFile(const NewFile&) = delete;
  NewFile& operator=(const NewFile&) = delete;

  /// Appends. @throws IoError
  void write(std::string_view bytes);
  /// Flushes to the disk and takes the target's place. @throws IoError
  void commit();

  /// Where it grows until commit().
  const std::string& temporary() const { return temporary_; }
  /// Descriptor of the open file, for those who write by other means.
  int descriptor() const { return descriptor_; }

 private:
  std::string path_;
  std::string temporary_;
  int descriptor_ = -1;
};

/// Writes a whole file by way of NewFile. @throws IoError
void write_file(const std::string& path, std::string_view bytes);

/// $PARSIMONY_CACHE; else the folder "parsimony" in $XDG_CACHE_HOME or ~/.cache, as the scripts of
/// tools/ have it.
std::filesystem::path cache_folder();

}  // namespace parsimony
