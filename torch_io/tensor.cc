#include "parsimony/torch_io/tensor.h"

#include <ATen/ATen.h>

#include <array>
#include <cstring>
#include <utility>

#include "parsimony/base/errors.h"
#include "parsimony/graph/elements.h"

namespace parsimony::torch_io {
namespace {

constexpr auto kTypes = std::to_array<std::pair<DType, at::ScalarType>>({
    {DType::kFloat32, at::kFloat},
    {DType::kFloat64, at::kDouble},
    {DType::kFloat16, at::kHalf},
    {DType::kBFloat16, at::kBFloat16},
    {DType::kInt8, at::kChar},
    {DType::kInt16, at::kShort},
    {DType::kInt32, at::kInt},
    {DType::kInt64, at::kLong},
    {DType::kUInt8, at::kByte},
    {DType::kBool, at::kBool},
});

}  // namespace

DType dtype_of(at::ScalarType type) {
  for (const auto& [ours, theirs] : kTypes) {
    if (theirs == type) return ours;
  }
  return DType::kUnknown;
}

at::ScalarType scalar_type_of(DType type) {
  for (const auto& [ours, theirs] : kTypes) {
    if (ours == type) return theirs;
  }
  throw UnsupportedError("libtorch has no tensors of type " + std::string(name_of(type)));
}

bool shows_elements_twice(const at::Tensor& tensor) {
  if (!tensor.defined() || tensor.layout() != at::kStrided) return false;
  for (int64_t d = 0; d < tensor.dim(); ++d) {
    if (tensor.size(d) > 1 && tensor.stride(d) == 0) return true;
  }
  return false;
}

at::ScalarType stored_as(DType type) {
  if (is_small_float(type)) return at::kFloat;
  switch (type) {
    case DType::kInt2:
    case DType::kInt4:
      return at::kChar;
    case DType::kUInt2:
    case DType::kUInt4:
      return at::kByte;
    case DType::kUInt16:
      return at::kInt;
    case DType::kUInt32:
      return at::kLong;
    default:
      return scalar_type_of(type);
  }
}

namespace {

/// Converts the elements to another type while copying.
template <typename To>
std::byte* convert_elements(const Weight& weight, std::byte* out) {
  const ReadNumber read = reader_of(weight.dtype);
  const int64_t count = weight.count();
  for (int64_t i = 0; i < count; ++i, out += sizeof(To)) {
    const auto number = static_cast<To>(read(weight.data + i * weight.stride));
    std::memcpy(out, &number, sizeof(To));
  }
  return out;
}

}  // namespace

std::byte* copy_elements(const Weight& weight, std::byte* out) {
  const int64_t count = weight.count();
  const int64_t size = size_of(weight.dtype);
  if (is_small_float(weight.dtype)) return convert_elements<float>(weight, out);
  if (weight.dtype == DType::kUInt16) return convert_elements<int32_t>(weight, out);
  if (weight.dtype == DType::kUInt32) return convert_elements<int64_t>(weight, out);
  if (weight.stride == size) {
    if (count > 0) std::memcpy(out, weight.data, count * size);
    return out + count * size;
  }
  for (int64_t i = 0; i < count; ++i, out += size) {
    std::memcpy(out, weight.data + i * weight.stride, size);
  }
  return out;
}

at::Tensor to_tensor(const Weight& weight) {
  at::Tensor tensor = at::empty(weight.dims, stored_as(weight.dtype));
  copy_elements(weight, static_cast<std::byte*>(tensor.data_ptr()));
  return tensor;
}

at::Tensor to_floats(const Weight& weight) {
  const at::ScalarType type = stored_as(weight.dtype);
  const bool half = type == at::kHalf || type == at::kBFloat16;
  if (!half || weight.stride != size_of(weight.dtype)) return to_tensor(weight);
  // Only read: libtorch has no view of constant bytes.
  auto* bytes =
      const_cast<std::byte*>(weight.data);  // NOLINT(cppcoreguidelines-pro-type-const-cast)
  return at::from_blob(bytes, weight.dims, type).to(at::kFloat);
}

at::Tensor to_tensor(const HostTensor& constant) {
  const at::Tensor wide = constant.floating() ? at::tensor(constant.floats, at::kDouble)
                                              : at::tensor(constant.ints, at::kLong);
  return wide.to(stored_as(constant.dtype)).reshape(constant.dims);
}

Weight view_of(const std::string& name, const at::Tensor& tensor) {
  const DType type = dtype_of(tensor.scalar_type());
  return {name, type, tensor.sizes().vec(), static_cast<const std::byte*>(tensor.data_ptr()),
          size_of(type)};
}

}  // namespace parsimony::torch_io
