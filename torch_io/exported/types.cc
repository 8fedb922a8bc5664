#include <algorithm>
#include <array>

#include "parsimony/torch_io/exported/types_impl.h"

namespace parsimony::torch_io::exported {
namespace {

constexpr auto kTypeRows = std::to_array<TypeRow>({
    {1, at::kByte, "uint8"},
    {2, at::kChar, "int8"},
    {3, at::kShort, "int16"},
    {4, at::kInt, "int32"},
    {5, at::kLong, "int64"},
    {6, at::kHalf, "float16"},
    {7, at::kFloat, "float32"},
    {8, at::kDouble, "float64"},
    {9, at::kComplexHalf, "complex32"},
    {10, at::kComplexFloat, "complex64"},
    {11, at::kComplexDouble, "complex128"},
    {12, at::kBool, "bool"},
    {13, at::kBFloat16, "bfloat16"},
});

template <typename Key>
const TypeRow* find_type(Key TypeRow::*column, const Key& key) {
  const auto* found = std::ranges::find(kTypeRows, key, column);
  return found == kTypeRows.end() ? nullptr : found;
}

}  // namespace

const TypeRow* type_of_code(int64_t code) { return find_type(&TypeRow::code, code); }

const TypeRow* type_of_name(std::string_view name) { return find_type(&TypeRow::name, name); }

const TypeRow* type_of(at::ScalarType type) { return find_type(&TypeRow::type, type); }

std::optional<int64_t> layout_of_code(int64_t code) {
  constexpr int64_t kStridedCode = 7;
  if (code != kStridedCode) return std::nullopt;
  return static_cast<int64_t>(at::Layout::Strided);
}

std::optional<int64_t> memory_format_of_code(int64_t code) {
  constexpr auto kFormats = std::to_array<at::MemoryFormat>(
      {at::MemoryFormat::Contiguous, at::MemoryFormat::ChannelsLast,
       at::MemoryFormat::ChannelsLast3d, at::MemoryFormat::Preserve});
  if (code < 1 || code > static_cast<int64_t>(kFormats.size())) return std::nullopt;
  return static_cast<int64_t>(kFormats[code - 1]);
}

}  // namespace parsimony::torch_io::exported
