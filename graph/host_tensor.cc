#include "parsimony/graph/host_tensor.h"

#include <cstring>
#include <utility>

#include "parsimony/graph/element_type_impl.h"
#include "parsimony/graph/elements.h"
#include "parsimony/graph/errors.h"
#include "parsimony/graph/graph.h"

namespace parsimony {
namespace {

/// Elements of a file need not be aligned, hence the memcpy.
template <typename Number>
std::vector<Number> read(const Weight& weight) {
  return with_element_type(weight.dtype, [&](auto element) {
    std::vector<Number> numbers(weight.count());
    const std::byte* from = weight.data;
    for (Number& number : numbers) {
      std::memcpy(&element, from, sizeof element);
      number = static_cast<Number>(element);
      from += weight.stride;
    }
    return numbers;
  });
}

}  // namespace

HostTensor HostTensor::scalar(int64_t value, DType dtype) {
  HostTensor tensor = vector({value}, dtype);
  tensor.dims.clear();
  return tensor;
}

HostTensor HostTensor::of(double number, DType dtype) {
  if (!is_floating(dtype)) return scalar(static_cast<int64_t>(number), dtype);
  return {dtype, {}, {}, {number}};
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

std::vector<std::byte> to_bytes(const HostTensor& tensor) {
  const size_t width = size_of(tensor.dtype);
  std::vector<std::byte> bytes(tensor.count() * width);
  for (size_t i = 0; i < tensor.ints.size(); ++i) {
    std::memcpy(bytes.data() + i * width, &tensor.ints[i], width);  // the lowest bytes come first
  }
  for (size_t i = 0; i < tensor.floats.size(); ++i) {
    write_number(tensor.floats[i], tensor.dtype, bytes.data() + i * width);
  }
  return bytes;
}

HostTensor to_host(const Weight& weight) {
  if (size_of(weight.dtype) == 0) {
    throw errors::not_numbers(weight.name, name_of(weight.dtype));
  }
  HostTensor tensor;
  tensor.dtype = weight.dtype;
  tensor.dims = weight.dims;
  if (tensor.floating()) {
    tensor.floats = read<double>(weight);
  } else {
    tensor.ints = read<int64_t>(weight);
  }
  return tensor;
}

}  // namespace parsimony
