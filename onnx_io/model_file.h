// An ONNX model file: read once, edited in place, written back.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace parsimony {
struct Weight;
}

namespace parsimony::onnx_io {

/// Supported versions; the constructor throws UnsupportedError for others.
inline constexpr int64_t kLowestIrVersion = 1;
inline constexpr int64_t kHighestIrVersion = 14;
inline constexpr int64_t kLowestOpset = 7;
inline constexpr int64_t kHighestOpset = 28;

/// Holds the model that a Graph's weights point into, so it must outlive the Graph.
///
///     onnx_io::ModelFile file("model.onnx");
///     Graph graph = onnx_io::to_graph(file);
///     onnx_io::OnnxEditor editor(file);
///     replay(plan, editor);
///     file.write("smaller.onnx");
class ModelFile {
 public:
  /// @throws IoError if the file cannot be read; ModelError if it is truncated, is not an ONNX
  /// model or has no nodes; UnsupportedError for a version outside of the range above.
  explicit ModelFile(const std::string& path);
  ~ModelFile();
  ModelFile(ModelFile&&) noexcept;
  ModelFile& operator=(ModelFile&&) noexcept;

  const std::string& path() const;

  /// Fingerprint of the file's bytes, lower-case hexadecimal. It is computed concurrently with
  /// reading; the first call may have to wait. External data files are not part of it. @throws
  /// IoError
  std::string sha256() const;

  /// Opset of ai.onnx; 0 if the model imports none.
  int opset() const;

  /// Returns whether an editor has changed the model.
  bool edited() const;

  /// Returns the external data files read so far: all of them once a graph has been built.
  std::vector<std::string> data_files() const;
  /// Returns whether the model has external data.
  bool has_data_beside() const;
  /// Returns whether the weight is in a file, this one or one with external data, or a lazy view of
  /// such a tensor that was edited. Edits do not change the bytes in the file during the lifetime
  /// of this object.
  bool is_mapped(const Weight& weight) const;

  /// Writes under a temporary name, then renames; `path` may be the model itself. An unedited model
  /// is reproduced byte for byte. External tensors are written to PATH.data; a file that the model
  /// itself reads is never overwritten (PATH.1.data instead).
  /// @throws IoError, also if `path` is such a file, which is then not changed; ModelError above 2
  /// GB. @returns the bytes of all files
  int64_t write(const std::string& path);

  /// Writes for a reader that maps external data instead of copying what is in the model: large
  /// weights are written to PATH.data. @throws IoError
  void write_beside(const std::string& path);

  struct Impl;
  Impl& impl() const { return *impl_; }  ///< for the other files of onnx_io

 private:
  std::unique_ptr<Impl> impl_;
};

}  // namespace parsimony::onnx_io
