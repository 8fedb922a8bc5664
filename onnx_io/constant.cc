#include <cstring>

#include "parsimony/onnx_io/constant_impl.h"

namespace parsimony::onnx_io {
namespace {

template <typename T>
const std::byte* keep(T number, Scalars& scalars) {
  auto& place = scalars.emplace_back();
  std::memcpy(place.data(), &number, sizeof(number));
  return place.data();
}

}  // namespace

int value_attribute(const onnx::NodeProto& node) {
  for (int i = 0; i < node.attribute_size(); ++i) {
    const auto& attribute = node.attribute(i);
    if (attribute.has_t() || attribute.name().starts_with("value_")) return i;
  }
  return -1;
}

std::optional<Weight> list_constant(const onnx::AttributeProto& attribute, Scalars& scalars) {
  const std::string& name = attribute.name();
  if (name == "value_ints") {
    return Weight{{},
                  DType::kInt64,
                  {attribute.ints_size()},
                  reinterpret_cast<const std::byte*>(attribute.ints().data()),
                  8};
  }
  if (name == "value_floats") {
    return Weight{{},
                  DType::kFloat32,
                  {attribute.floats_size()},
                  reinterpret_cast<const std::byte*>(attribute.floats().data()),
                  4};
  }
  if (name == "value_int") {
    return Weight{{}, DType::kInt64, {}, keep(attribute.i(), scalars), 8};
  }
  if (name == "value_float") {
    return Weight{{}, DType::kFloat32, {}, keep(attribute.f(), scalars), 4};
  }
  return std::nullopt;
}

}  // namespace parsimony::onnx_io
