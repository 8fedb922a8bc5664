// External data of an ONNX model. The files are mapped, never read completely.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "parsimony/base/files.h"

namespace parsimony::onnx_io {

/// The external data files of a model, mapped on first use.
class ExternalData {
 public:
  struct Range {
    const std::byte* data = nullptr;
    int64_t bytes = 0;
  };

  /// One mapped file.
  struct File {
    std::string location;  ///< as in the model: relative to the model's folder
    std::string path;
    const std::byte* data = nullptr;
    int64_t bytes = 0;
  };

  /// `model_path` is the model whose folder the files must not leave. If the model is a symbolic
  /// link, the files may be links to files next to its target.
  explicit ExternalData(const std::string& model_path);
  ~ExternalData();
  ExternalData(ExternalData&&) noexcept;
  ExternalData& operator=(ExternalData&&) noexcept;

  /// Maps the model itself, as kOwnFile; it is none of `files`. @throws IoError
  const MappedFile& map_own();

  /// Returns the bytes of a tensor; `bytes` < 0: everything from `offset` on. @throws ModelError if
  /// the location is absolute or leaves the folder, or the file is too short; IoError if it cannot
  /// be read.
  Range locate(std::string_view tensor, const std::string& location, int64_t offset, int64_t bytes);

  /// Releases the pages of the range; they are read again when needed. Does nothing for other
  /// memory.
  void release(const std::byte* data, int64_t bytes) const;

  /// Returns whether the pointer is in a mapped file.
  bool holds(const std::byte* data) const { return mapping_of(data) != nullptr; }

  std::vector<File> files() const;

 private:
  struct Mapping;
  const Mapping* mapping_of(const std::byte* data) const;
  const Mapping& mapping(std::string_view tensor, const std::string& location);
  const Mapping& map(const std::string& path, const std::string& location);

  std::string model_path_;
  std::string folder_;
  std::vector<std::unique_ptr<Mapping>> mappings_;
  // An exporter may write a file per tensor.
  std::unordered_map<std::string, const Mapping*> by_location_;
  std::map<const std::byte*, const Mapping*, std::less<>> by_address_;
};

}  // namespace parsimony::onnx_io
