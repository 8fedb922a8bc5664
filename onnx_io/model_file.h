// An ONNX model as it lies in its file: read once, edited in place, written back.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace parsimony {
struct Weight;
}

namespace parsimony::onnx_io {

/// Versions that are read; outside of them the constructor throws UnsupportedError.
inline constexpr int64_t kLowestIrVersion = 3;
inline constexpr int64_t kHighestIrVersion = 13;
inline constexpr int64_t kLowestOpset = 7;
inline constexpr int64_t kHighestOpset = 25;

/// Holds the model that a Graph's weights point into, so it must outlive the Graph.
///
///     onnx_io::ModelFile file("model.onnx");
///     Graph graph = onnx_io::to_graph(file);
///     onnx_io::OnnxEditor editor(file);
///     replay(plan, editor);
///     file.write("smaller.onnx");
class ModelFile {
 public:
  /// @throws IoError if the file cannot be read; ModelError if it is truncated, no ONNX model or
  /// has no nodes; UnsupportedError for a version outside of the range above.
  explicit ModelFile(const std::string& path);
  ~ModelFile();
  ModelFile(ModelFile&&) noexcept;
  ModelFile& operator=(ModelFile&&) noexcept;

  const std::string& path() const;

  /// Fingerprint of the file's bytes, lower-case hexadecimal. It is computed beside reading; the
  /// first call may have to wait for it. External data files are not part of it. @throws IoError
  std::string sha256() const;

  /// Opset of ai.onnx; 0 if the model imports none.
  int opset() const;

  /// Some editor has changed something.
  bool edited() const;

  /// The files beside the model in which some of its tensors lie: those that were asked for so far,
  /// all of them once there is a graph.
  std::vector<std::string> data_files() const;
  /// Some tensors lie in files beside the model.
  bool has_data_beside() const;
  /// Lies the weight in such a file, or is it what an edit leaves of one there, to be made anew? In
  /// a file its bytes stay as they are for as long as this lives, whatever is edited.
  bool holds_beside(const Weight& weight) const;

  /// Writes under a temporary name, then renames; `path` may be the model itself. A model that was
  /// not edited comes out byte for byte. If tensors lie in external files, these go to PATH.data;
  /// a file that the model itself reads is never overwritten (PATH.1.data instead).
  /// @throws IoError, also where `path` is such a file, leaving an older file at `path` whole;
  /// ModelError above 2 GB.
  void write(const std::string& path);

  struct Impl;
  Impl& impl() const { return *impl_; }  ///< for the other files of onnx_io

 private:
  std::unique_ptr<Impl> impl_;
};

}  // namespace parsimony::onnx_io
