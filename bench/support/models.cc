#include "bench/support/models.h"

#include <stdlib.h>  // mkdtemp

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <stdexcept>

#include "bench/support/builder.h"
#include "bench/support/external_writer.h"

namespace parsimony::bench {
namespace fs = std::filesystem;
namespace {

constexpr int64_t kWidth = 16;

std::string conv_bn_relu(Builder& b, const std::string& x, int64_t in, int64_t out, int kernel,
                         int stride, const std::string& name) {
  const std::string y = b.conv(x, in, out, kernel, stride, name);
  return b.unary("Relu", b.batch_norm(y, out, name + ".bn"), name + ".relu");
}

/// Reduce, 3×3, expand, and the way round them.
std::string bottleneck(Builder& b, std::string x, int64_t in, int64_t width, int64_t out,
                       int stride, const std::string& name) {
  std::string y = conv_bn_relu(b, x, in, width, 1, 1, name + ".conv1");
  y = conv_bn_relu(b, y, width, width, 3, stride, name + ".conv2");
  y = b.batch_norm(b.conv(y, width, out, 1, 1, name + ".conv3"), out, name + ".bn3");
  if (in != out || stride != 1) {
    x = b.conv(x, in, out, 1, stride, name + ".down");
    x = b.batch_norm(x, out, name + ".down.bn");
  }
  return b.unary("Relu", b.add(y, x, name + ".add"), name + ".relu");
}

void classify(Builder& b, const std::string& x, int64_t channels, int64_t classes) {
  const std::string pooled = b.unary("GlobalAveragePool", x, "pool");
  b.linear(b.unary("Flatten", pooled, "flat"), channels, classes, "logits");
  b.output("logits");
}

void chain(Builder& b, int nodes) {
  std::string x = b.input("x", {-1, 3, 8, 8});
  int64_t in = 3;
  for (int i = 0; b.nodes() + 4 < nodes; ++i) {
    x = conv_bn_relu(b, x, in, kWidth, 1, 1, "conv" + std::to_string(i));
    in = kWidth;
  }
  classify(b, x, in, 10);
}

void residual(Builder& b, int nodes) {
  std::string x = conv_bn_relu(b, b.input("x", {-1, 3, 8, 8}), 3, kWidth, 3, 1, "stem");
  for (int i = 0; b.nodes() + 4 < nodes; ++i) {
    x = bottleneck(b, x, kWidth, kWidth / 2, kWidth, 1, "block" + std::to_string(i));
  }
  classify(b, x, kWidth, 10);
}

void dense(Builder& b, int nodes) {
  constexpr int kLayers = 12;
  constexpr int64_t kGrowth = 4;
  std::string x = conv_bn_relu(b, b.input("x", {-1, 3, 8, 8}), 3, kWidth, 3, 1, "stem");
  for (int block = 0; b.nodes() + 4 < nodes; ++block) {
    const std::string name = "block" + std::to_string(block);
    std::vector<std::string> parts = {x};
    int64_t channels = kWidth;
    for (int i = 0; i < kLayers; ++i) {
      const std::string layer = name + "." + std::to_string(i);
      std::string y = x;
      if (i > 0) Builder::set(b.node("Concat", parts, y = layer + ".concat"), "axis", 1);
      y = b.unary("Relu", b.batch_norm(y, channels, layer + ".bn"), layer + ".relu");
      parts.push_back(b.conv(y, channels, kGrowth, 3, 1, layer + ".conv"));
      channels += kGrowth;
    }
    const std::string all = name + ".concat";
    Builder::set(b.node("Concat", parts, all), "axis", 1);
    x = conv_bn_relu(b, all, channels, kWidth, 1, 1, name + ".transition");
  }
  classify(b, x, kWidth, 10);
}

std::string heads(Builder& b, const std::string& x, const std::string& shape,
                  const Builder::Dims& order, const std::string& name) {
  b.node("Reshape", {x, shape}, name + ".split");
  Builder::set(b.node("Transpose", {name + ".split"}, name + ".heads"), "perm", order);
  return name + ".heads";
}

void attention(Builder& b, int nodes) {
  constexpr int64_t kHeads = 4;
  std::string x = b.linear(b.input("x", {-1, 8, 12}), 12, kWidth, "embed");
  const std::string split = b.integers("split", {0, 0, kHeads, -1});
  const std::string merge = b.integers("merge", {0, 0, kWidth});
  for (int i = 0; b.nodes() + 4 < nodes; ++i) {
    const std::string n = "block" + std::to_string(i);
    const auto normalised = [&](const std::string& name) {
      const std::string gamma = b.weight(name + ".weight", {kWidth}, 1);
      b.node("LayerNormalization", {x, gamma, b.weight(name + ".bias", {kWidth}, 1)}, name);
      return name;
    };
    std::string y = normalised(n + ".norm1");
    const auto part = [&](const std::string& letter, const Builder::Dims& order) {
      return heads(b, b.linear(y, kWidth, kWidth, n + letter), split, order, n + letter);
    };
    const std::string q = part(".q", {0, 2, 1, 3});
    const std::string k = part(".k", {0, 2, 3, 1});
    const std::string v = part(".v", {0, 2, 1, 3});
    b.node("MatMul", {q, k}, n + ".scores");
    b.node("MatMul", {b.unary("Softmax", n + ".scores", n + ".softmax"), v}, n + ".context");
    Builder::set(b.node("Transpose", {n + ".context"}, n + ".back"), "perm", {0, 2, 1, 3});
    b.node("Reshape", {n + ".back", merge}, n + ".merged");
    x = b.add(x, b.linear(n + ".merged", kWidth, kWidth, n + ".out"), n + ".add1");
    y = b.linear(normalised(n + ".norm2"), kWidth, 2 * kWidth, n + ".up");
    y = b.linear(b.unary("Relu", y, n + ".relu"), 2 * kWidth, kWidth, n + ".down");
    x = b.add(x, y, n + ".add2");
  }
  b.linear(x, kWidth, 10, "logits");
  b.output("logits");
}

std::ofstream create(const std::string& path) {
  std::ofstream out(path, std::ios::binary);
  if (!out) throw std::runtime_error(path + ": cannot be written");
  return out;
}

}  // namespace

onnx::ModelProto resnet50() {
  struct Stage {
    int blocks;
    int64_t width;
    int stride;
  };
  Builder b;
  std::string x = conv_bn_relu(b, b.input("x", {-1, 3, 224, 224}), 3, 64, 7, 2, "conv1");
  onnx::NodeProto& pool = b.node("MaxPool", {x}, "maxpool");
  Builder::set(pool, "kernel_shape", {3, 3});
  Builder::set(pool, "strides", {2, 2});
  Builder::set(pool, "pads", {1, 1, 1, 1});
  x = "maxpool";
  int64_t in = 64;
  int number = 1;
  for (const Stage& stage : {Stage{3, 64, 1}, {4, 128, 2}, {6, 256, 2}, {3, 512, 2}}) {
    const std::string name = "layer" + std::to_string(number++) + ".";
    for (int i = 0; i < stage.blocks; ++i) {
      x = bottleneck(b, x, in, stage.width, 4 * stage.width, i == 0 ? stage.stride : 1,
                     name + std::to_string(i));
      in = 4 * stage.width;
    }
  }
  classify(b, x, in, 1000);
  return b.take();
}

std::string_view name_of(Family family) {
  switch (family) {
    case Family::kChain:
      return "chain";
    case Family::kResidual:
      return "residual";
    case Family::kDense:
      return "dense";
    case Family::kAttention:
      return "attention";
    case Family::kListed:
      break;
  }
  return "listed";
}

onnx::ModelProto network(Family family, int nodes) {
  Builder b;
  switch (family) {
    case Family::kChain:
      chain(b, nodes);
      break;
    case Family::kResidual:
      residual(b, nodes);
      break;
    case Family::kDense:
      dense(b, nodes);
      break;
    case Family::kAttention:
      attention(b, nodes);
      break;
    case Family::kListed:
      chain(b, nodes);
      b.list_initializers();
      break;
  }
  return b.take();
}

onnx::ModelProto one_large_tensor(int64_t bytes) {
  constexpr int64_t kHidden = 2048;
  Builder b;
  std::string x = b.linear(b.input("x", {-1, 64}), 64, kHidden, "hidden");
  x = b.unary("Relu", x, "relu");
  const int64_t outputs = bytes / static_cast<int64_t>(sizeof(float)) / kHidden;
  b.node("MatMul", {x, b.weight("large.weight", {kHidden, outputs}, kHidden)}, "y");
  b.output("y");
  return b.take();
}

void save(const onnx::ModelProto& model, const std::string& path) {
  std::ofstream out = create(path);
  if (!model.SerializeToOstream(&out) || !out.flush()) {
    throw std::runtime_error(path + ": cannot be written");
  }
}

void save_with_external_data(const std::string& path, int64_t bytes) {
  constexpr int64_t kStream = 1024;
  constexpr int64_t kHidden = 4096;
  constexpr int64_t kMatrix = kStream * kHidden * static_cast<int64_t>(sizeof(float));
  const std::string location = fs::path(path).filename().string() + ".data";
  std::ofstream data = create(path + ".data");
  Builder numbers;
  numbers.weight("w", {kStream, kHidden}, kStream);
  const onnx::ModelProto matrix = numbers.take();

  Builder b;
  std::string x = b.linear(b.input("x", {-1, 64}), 64, kStream, "embed");
  std::vector<std::string> names;
  const auto matmul = [&](const std::string& in, const std::string& name) {
    names.push_back(name + ".weight");
    b.node("MatMul", {in, names.back()}, name);
    return name;
  };
  for (int64_t i = 0; 2 * i * kMatrix < bytes; ++i) {
    const std::string name = "block" + std::to_string(i);
    const std::string y = b.unary("Relu", matmul(x, name + ".up"), name + ".relu");
    x = b.add(x, matmul(y, name + ".down"), name + ".add");
  }
  b.linear(x, kStream, 10, "logits");
  b.output("logits");
  onnx::ModelProto model = b.take();
  for (size_t i = 0; i < names.size(); ++i) {
    onnx::TensorProto& tensor = *model.mutable_graph()->add_initializer();
    tensor.set_name(names[i]);
    tensor.set_data_type(onnx::TensorProto::FLOAT);
    tensor.add_dims(i % 2 == 0 ? kStream : kHidden);
    tensor.add_dims(i % 2 == 0 ? kHidden : kStream);
    make_external(tensor, location, static_cast<int64_t>(i) * kMatrix, kMatrix);
    data << matrix.graph().initializer(0).raw_data();
  }
  if (!data.flush()) throw std::runtime_error(path + ".data: cannot be written");
  save(model, path);
}

Folder::Folder() : path_((fs::temp_directory_path() / "parsimony_bench_XXXXXX").string()) {
  if (mkdtemp(path_.data()) == nullptr) throw std::runtime_error("cannot make " + path_);
}

Folder::~Folder() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

}  // namespace parsimony::bench
