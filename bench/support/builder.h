// Adds layers to a ModelProto. A layer is named as its output.
#pragma once

#include <onnx/onnx_pb.h>

#include <cstdint>
#include <initializer_list>
#include <string>
#include <vector>

namespace parsimony::bench {

class Builder {
 public:
  using Dims = std::vector<int64_t>;

  Builder();

  std::string input(const std::string& name, const Dims& dims);  ///< -1: a symbolic dimension
  void output(const std::string& name);
  /// Declares every initializer as a graph input, as IR version 3 wants it.
  void list_initializers();

  /// An initializer of numbers of variance 2 / `fan_in`, in raw_data.
  std::string weight(const std::string& name, const Dims& dims, int64_t fan_in);
  std::string integers(const std::string& name, const Dims& values);

  onnx::NodeProto& node(const std::string& op, const std::vector<std::string>& inputs,
                        const std::string& name);
  static void set(onnx::NodeProto& node, const std::string& attribute, int64_t value);
  static void set(onnx::NodeProto& node, const std::string& attribute, const Dims& values);

  std::string unary(const std::string& op, const std::string& x, const std::string& name);
  /// Weight [out, in, kernel, kernel] without bias, padded so that stride 1 keeps the size.
  std::string conv(const std::string& x, int64_t in, int64_t out, int kernel, int stride,
                   const std::string& name);
  std::string batch_norm(const std::string& x, int64_t channels, const std::string& name);
  std::string add(const std::string& a, const std::string& b, const std::string& name);
  /// MatMul by [in, out] and Add of a bias.
  std::string linear(const std::string& x, int64_t in, int64_t out, const std::string& name);

  int nodes() const { return model_.graph().node_size(); }
  onnx::ModelProto take() { return std::move(model_); }

 private:
  float random();
  std::string vector(const std::string& name, int64_t size, float mean, float spread);

  onnx::ModelProto model_;
  uint64_t state_ = 1;
};

}  // namespace parsimony::bench
