#include "bench/support/external_writer.h"

#include <Eigen/Core>
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <stdexcept>

namespace parsimony::bench {
namespace {

constexpr int64_t kBlock = int64_t{1} << 20;  // elements written at a time

/// What 16 random bits become: numbers between -`scale` and `scale`.
std::vector<uint16_t> numbers(float scale) {
  std::vector<uint16_t> table(1 << 16);
  for (size_t i = 0; i < table.size(); ++i) {
    const float value = scale * (static_cast<float>(i) / 32768.0F - 1.0F);
    table[i] = Eigen::numext::bit_cast<uint16_t>(Eigen::half(value));
  }
  return table;
}

}  // namespace

ExternalWriter::ExternalWriter(const std::string& path)
    : path_(path), out_(path, std::ios::binary | std::ios::trunc) {
  if (!out_) throw std::runtime_error(path + ": cannot be written");
}

onnx::TensorProto ExternalWriter::weight(const std::string& name, const std::vector<int64_t>& dims,
                                         int64_t fan_in) {
  onnx::TensorProto tensor;
  tensor.set_name(name);
  tensor.set_data_type(onnx::TensorProto::FLOAT16);
  int64_t count = 1;
  for (const int64_t dim : dims) {
    tensor.add_dims(dim);
    count *= dim;
  }
  const auto table = numbers(std::sqrt(6.0F / static_cast<float>(fan_in)));
  std::vector<uint16_t> block(std::min(count, kBlock));
  for (int64_t done = 0; done < count;) {
    const int64_t part = std::min(count - done, kBlock);
    for (int64_t i = 0; i < part; ++i) {
      state_ = state_ * 6364136223846793005ULL + 1442695040888963407ULL;
      block[i] = table[state_ >> 48];
    }
    out_.write(reinterpret_cast<const char*>(block.data()), part * 2);
    done += part;
  }
  const std::string location = std::filesystem::path(path_).filename().string();
  make_external(tensor, location, position_, count * 2);
  position_ += count * 2;
  return tensor;
}

int64_t ExternalWriter::finish() {
  if (!out_.flush()) throw std::runtime_error(path_ + ": cannot be written");
  return position_;
}

void make_external(onnx::TensorProto& tensor, const std::string& location, int64_t offset,
                   int64_t bytes) {
  tensor.set_data_location(onnx::TensorProto::EXTERNAL);
  const auto entry = [&](const std::string& key, const std::string& value) {
    auto& pair = *tensor.add_external_data();
    pair.set_key(key);
    pair.set_value(value);
  };
  entry("location", location);
  entry("offset", std::to_string(offset));
  entry("length", std::to_string(bytes));
}

}  // namespace parsimony::bench
