#include "bench/support/builder.h"

#include <cmath>
#include <cstring>

namespace parsimony::bench {
namespace {

onnx::TensorProto& initializer(onnx::ModelProto& model, const std::string& name,
                               const std::vector<int64_t>& dims, int32_t type) {
  onnx::TensorProto& tensor = *model.mutable_graph()->add_initializer();
  tensor.set_name(name);
  tensor.set_data_type(type);
  for (const int64_t dim : dims) tensor.add_dims(dim);
  return tensor;
}

int64_t product(const std::vector<int64_t>& dims) {
  int64_t count = 1;
  for (const int64_t dim : dims) count *= dim;
  return count;
}

}  // namespace

Builder::Builder() {
  model_.set_ir_version(8);
  model_.set_producer_name("parsimony bench");
  model_.add_opset_import()->set_version(17);
  model_.mutable_graph()->set_name("network");
}

std::string Builder::input(const std::string& name, const Dims& dims) {
  onnx::ValueInfoProto& info = *model_.mutable_graph()->add_input();
  info.set_name(name);
  auto& type = *info.mutable_type()->mutable_tensor_type();
  type.set_elem_type(onnx::TensorProto::FLOAT);
  for (const int64_t dim : dims) {
    auto& entry = *type.mutable_shape()->add_dim();
    if (dim < 0) {
      entry.set_dim_param("batch");
    } else {
      entry.set_dim_value(dim);
    }
  }
  return name;
}

void Builder::output(const std::string& name) {
  onnx::ValueInfoProto& info = *model_.mutable_graph()->add_output();
  info.set_name(name);
  info.mutable_type()->mutable_tensor_type()->set_elem_type(onnx::TensorProto::FLOAT);
}

void Builder::list_initializers() {
  model_.set_ir_version(3);
  for (const auto& tensor : model_.graph().initializer()) {
    input(tensor.name(), {tensor.dims().begin(), tensor.dims().end()});
  }
}

/// Between -1 and 1. A linear congruential generator: 25 M numbers should not take seconds.
float Builder::random() {
  state_ = state_ * 6364136223846793005ULL + 1442695040888963407ULL;
  return static_cast<float>(static_cast<int32_t>(state_ >> 32)) / 2147483648.0F;
}

std::string Builder::weight(const std::string& name, const Dims& dims, int64_t fan_in) {
  onnx::TensorProto& tensor = initializer(model_, name, dims, onnx::TensorProto::FLOAT);
  const size_t count = product(dims);
  std::string& data = *tensor.mutable_raw_data();
  data.resize(count * sizeof(float));
  const float scale = std::sqrt(6.0F / static_cast<float>(fan_in));  // uniform: variance scale²/3
  for (size_t i = 0; i < count; ++i) {
    const float value = scale * random();
    std::memcpy(data.data() + i * sizeof(float), &value, sizeof(float));
  }
  return name;
}

std::string Builder::vector(const std::string& name, int64_t size, float mean, float spread) {
  onnx::TensorProto& tensor = initializer(model_, name, {size}, onnx::TensorProto::FLOAT);
  std::string& data = *tensor.mutable_raw_data();
  for (int64_t i = 0; i < size; ++i) {
    const float value = mean + spread * random();
    char bytes[sizeof(float)];
    std::memcpy(bytes, &value, sizeof(float));
    data.append(bytes, sizeof(float));
  }
  return name;
}

std::string Builder::integers(const std::string& name, const Dims& values) {
  const auto count = static_cast<int64_t>(values.size());
  onnx::TensorProto& tensor = initializer(model_, name, {count}, onnx::TensorProto::INT64);
  for (const int64_t value : values) tensor.add_int64_data(value);
  return name;
}

onnx::NodeProto& Builder::node(const std::string& op, const std::vector<std::string>& inputs,
                               const std::string& name) {
  onnx::NodeProto& node = *model_.mutable_graph()->add_node();
  node.set_op_type(op);
  node.set_name(name);
  for (const std::string& input : inputs) node.add_input(input);
  node.add_output(name);
  return node;
}

void Builder::set(onnx::NodeProto& node, const std::string& attribute, int64_t value) {
  onnx::AttributeProto& entry = *node.add_attribute();
  entry.set_name(attribute);
  entry.set_type(onnx::AttributeProto::INT);
  entry.set_i(value);
}

void Builder::set(onnx::NodeProto& node, const std::string& attribute, const Dims& values) {
  onnx::AttributeProto& entry = *node.add_attribute();
  entry.set_name(attribute);
  entry.set_type(onnx::AttributeProto::INTS);
  for (const int64_t value : values) entry.add_ints(value);
}

std::string Builder::unary(const std::string& op, const std::string& x, const std::string& name) {
  node(op, {x}, name);
  return name;
}

std::string Builder::conv(const std::string& x, int64_t in, int64_t out, int kernel, int stride,
                          const std::string& name) {
  const int64_t pad = kernel / 2;
  const std::string w = weight(name + ".weight", {out, in, kernel, kernel}, in * kernel * kernel);
  onnx::NodeProto& conv = node("Conv", {x, w}, name);
  set(conv, "kernel_shape", {kernel, kernel});
  set(conv, "strides", {stride, stride});
  set(conv, "pads", {pad, pad, pad, pad});
  return name;
}

std::string Builder::batch_norm(const std::string& x, int64_t channels, const std::string& name) {
  node("BatchNormalization",
       {x, vector(name + ".weight", channels, 1, 0.5F), vector(name + ".bias", channels, 0, 0.2F),
        vector(name + ".running_mean", channels, 0, 0.2F),
        vector(name + ".running_var", channels, 1, 0.5F)},
       name);
  return name;
}

std::string Builder::add(const std::string& a, const std::string& b, const std::string& name) {
  node("Add", {a, b}, name);
  return name;
}

std::string Builder::linear(const std::string& x, int64_t in, int64_t out,
                            const std::string& name) {
  node("MatMul", {x, weight(name + ".weight", {in, out}, in)}, name + ".product");
  return add(name + ".product", vector(name + ".bias", out, 0, 0.1F), name);
}

}  // namespace parsimony::bench
