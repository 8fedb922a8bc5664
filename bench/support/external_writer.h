// Initializers of float16 numbers that go straight to a file beside the model.
#pragma once

#include <onnx/onnx_pb.h>

#include <cstdint>
#include <fstream>
#include <string>
#include <vector>

namespace parsimony::bench {

/// The data file of one model, written in pieces: it may exceed the memory.
class ExternalWriter {
 public:
  /// @throws std::runtime_error if PATH cannot be created
  explicit ExternalWriter(const std::string& path);

  /// Random numbers of variance 2 / `fan_in`, uniform.
  onnx::TensorProto weight(const std::string& name, const std::vector<int64_t>& dims,
                           int64_t fan_in);

  /// Flushes. @returns bytes written. @throws std::runtime_error if the disk is full
  int64_t finish();

 private:
  std::string path_;
  std::ofstream out_;
  int64_t position_ = 0;
  uint64_t state_ = 1;
};

/// Moves a tensor's numbers, `bytes` at `offset` of `location`, out of the model.
void make_external(onnx::TensorProto& tensor, const std::string& location, int64_t offset,
                   int64_t bytes);

}  // namespace parsimony::bench
