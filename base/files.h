// Files on disk: read completely, and replaced atomically; folders for a while.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

namespace parsimony {

/// Content of a file. @throws IoError
std::string read_file(const std::string& path);

/// Bytes of a file; 0 if it cannot be read.
int64_t size_of_file(const std::string& path);

/// A memory-mapped file. Whatever cannot be mapped, such as a pipe, is read completely. The file
/// must not be truncated meanwhile.
class MappedFile {
 public:
  /// @throws IoError
  explicit MappedFile(const std::string& path);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  std::string_view bytes() const { return bytes_; }
  /// Whether these bytes are part of the file's.
  bool holds(std::string_view part) const;
  /// These bytes, if they are many, need not stay resident until they are read again; others stay
  /// as they are.
  void release(std::string_view part) const;

 private:
  std::string_view bytes_;
  std::string content_;  ///< of a file that cannot be mapped
};

/// Does the file begin like a zip archive, and hence like TorchScript? False if it cannot be read.
bool is_zip(const std::string& path);

/// A file that appears under its name only once it is complete. It is written under a temporary
/// name beside the target; commit() renames it, and without commit() nothing remains. Of a link the
/// target is replaced.
///
///     NewFile file("small.onnx");
///     file.write(bytes);
///     file.commit();
class NewFile {
 public:
  /// @throws IoError if no file can be created in the folder, or if something else than a file has
  /// the name
  explicit NewFile(std::string path);
  ~NewFile();
  NewFile(const NewFile&) = delete;
  NewFile& operator=(const NewFile&) = delete;

  /// Appends. @throws IoError
  void write(std::string_view bytes);
  /// Takes its name. A target that exists is replaced once the new file is on the disk, and so is
  /// one that others will refer to: `lasting`. @throws IoError
  void commit(bool lasting = false);

  /// The file's path until commit().
  const std::string& temporary() const { return temporary_; }
  /// Descriptor of the open file, for callers that write by other means.
  int descriptor() const { return descriptor_; }

 private:
  std::string path_;
  std::string temporary_;
  int descriptor_ = -1;
};

/// Writes a complete file through NewFile. @throws IoError
void write_file(const std::string& path, std::string_view bytes);

/// The value of an environment variable; empty if it is not set.
std::string environment(const char* name);

/// $PARSIMONY_CACHE; else the folder "parsimony" in $XDG_CACHE_HOME or ~/.cache, as the scripts of
/// tools/ have it.
std::filesystem::path cache_folder();

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
  /// Returns the total size in bytes of the files in the directory.
  int64_t bytes() const;

 private:
  std::filesystem::path path_;
};

/// "data:image/png;base64,…" of the bytes of a PNG or JPEG; empty for what is neither.
std::string picture_uri(std::string_view bytes);

}  // namespace parsimony
