#include "parsimony/checkpoints/element_type.h"

#include <algorithm>
#include <array>

namespace parsimony {
namespace {

constexpr auto kTable = std::to_array<ElementType>({
    {"float32", "FloatStorage", "F32", 4, DType::kFloat32},
    {"float64", "DoubleStorage", "F64", 8, DType::kFloat64},
    {"float16", "HalfStorage", "F16", 2, DType::kFloat16},
    {"bfloat16", "BFloat16Storage", "BF16", 2, DType::kBFloat16},
    {"int64", "LongStorage", "I64", 8, DType::kInt64},
    {"int32", "IntStorage", "I32", 4, DType::kInt32},
    {"int16", "ShortStorage", "I16", 2, DType::kInt16},
    {"int8", "CharStorage", "I8", 1, DType::kInt8},
    {"uint8", "ByteStorage", "U8", 1, DType::kUInt8},
    {"bool", "BoolStorage", "BOOL", 1, DType::kBool},
    {"uint16", "", "U16", 2, DType::kUInt16},
    {"uint32", "", "U32", 4, DType::kUInt32},
    {"uint64", "", "U64", 8, DType::kUInt64},
    {"complex32", "", "", 4},
    {"complex64", "ComplexFloatStorage", "C64", 8},
    {"complex128", "ComplexDoubleStorage", "", 16},
    {"quint8", "QUInt8Storage", "", 1},
    {"qint8", "QInt8Storage", "", 1},
    {"qint32", "QInt32Storage", "", 4},
    {"quint4x2", "QUInt4x2Storage", "", 1},
    {"quint2x4", "QUInt2x4Storage", "", 1},
    {"float8_e4m3fn", "", "F8_E4M3", 1},
    {"float8_e5m2", "", "F8_E5M2", 1},
    {"float8_e4m3fnuz", "", "F8_E4M3FNUZ", 1},
    {"float8_e5m2fnuz", "", "F8_E5M2FNUZ", 1},
    {"float8_e8m0fnu", "", "F8_E8M0", 1},
    {"bytes", "UntypedStorage", "", 1},
});

const ElementType* find(std::string_view ElementType::*column, std::string_view word) {
  const auto* found = std::ranges::find(kTable, word, column);
  return word.empty() || found == kTable.end() ? nullptr : found;
}

}  // namespace

const ElementType* element_type_of_name(std::string_view name) {
  return find(&ElementType::name, name);
}

const ElementType* element_type_of_storage(std::string_view storage) {
  return find(&ElementType::storage, storage);
}

const ElementType* element_type_of_safetensors(std::string_view name) {
  return find(&ElementType::safetensors, name);
}

}  // namespace parsimony
