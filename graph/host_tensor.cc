#include "parsimony/graph/host_tensor.h"

#include <Eigen/Core>
#include <cstring>
#include <utility>

#include "parsimony/graph/errors.h"
#include "parsimony/graph/graph.h"

namespace parsimony {
namespace {

/// Elements of a file need not be aligned, hence the memcpy.
template <typename Stored, typename Number>
std::vector<Number> read(const Weight& weight) {
  const int64_t count = weight.count();
  std::vector<Number> numbers(count);
  for (int64_t i = 0; i < count; ++i) {
    Stored element;
    std::memcpy(&element, weight.data + i * weight.stride, sizeof(Stored));
    numbers[i] = static_cast<Number>(element);
  }
  return numbers;
}

std::vector<double> read_floats(const Weight& weight) {
  switch (weight.dtype) {
    case DType::kFloat64:
      return read<double, double>(weight);
    case DType::kFloat16:
      return read<Eigen::half, double>(weight);
    case DType::kBFloat16:
      return read<Eigen::bfloat16, double>(weight);
    default:
      return read<float, double>(weight);
  }
}

std::vector<int64_t> read_ints(const Weight& weight) {
  switch (weight.dtype) {
    case DType::kBool:
    case DType::kUInt8:
      return read<uint8_t, int64_t>(weight);
    case DType::kInt8:
      return read<int8_t, int64_t>(weight);
    case DType::kInt16:
      return read<int16_t, int64_t>(weight);
    case DType::kUInt16:
      return read<uint16_t, int64_t>(weight);
    case DType::kInt32:
      return read<int32_t, int64_t>(weight);
    case DType::kUInt32:
      return read<uint32_t, int64_t>(weight);
    case DType::kUInt64:
      return read<uint64_t, int64_t>(weight);
    default:
      return read<int64_t, int64_t>(weight);
  }
}

}  // namespace

HostTensor HostTensor::scalar(int64_t value, DType dtype) {
  HostTensor tensor = vector({value}, dtype);
  tensor.dims.clear();
  return tensor;
}

HostTensor HostTensor::vector(std::vector<int64_t> values, DType dtype) {
  HostTensor tensor;
  tensor.dtype = dtype;
  tensor.dims = {static_cast<int64_t>(values.size())};
  if (is_floating(dtype)) {
    tensor.floats.assign(values.begin(), values.end());
  } else {
    tensor.ints = std::move(values);
  }
  return tensor;
}

HostTensor to_host(const Weight& weight) {
  if (size_of(weight.dtype) == 0) {
    throw errors::not_numbers(weight.name, name_of(weight.dtype));
  }
  HostTensor tensor;
  tensor.dtype = weight.dtype;
  tensor.dims = weight.dims;
  if (tensor.floating()) {
    tensor.floats = read_floats(weight);
  } else {
    tensor.ints = read_ints(weight);
  }
  return tensor;
}

}  // namespace parsimony
