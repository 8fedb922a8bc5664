// Torch promotes the operands of an elementwise operator to one type; in ONNX this has to be
// explicit. A number (rank 0) changes the type of a tensor only to a wider category: boolean,
// integer, floating point.
// @source c10::promoteTypes, at::result_type
#include <algorithm>
#include <array>

#include "parsimony/onnx_io/export/lowering_impl.h"

namespace parsimony::onnx_io {
namespace {

struct Operands {
  std::string_view op;
  size_t first = 0;  ///< operands from here on are of one type
};

constexpr auto kOperands = std::to_array<Operands>({
    {"Add"},
    {"Concat"},
    {"Div"},
    {"Equal"},
    {"Greater"},
    {"GreaterOrEqual"},
    {"Less"},
    {"LessOrEqual"},
    {"MatMul"},
    {"Max"},
    {"Min"},
    {"Mod"},
    {"Mul"},
    {"PRelu"},
    {"Pow"},
    {"Sub"},
    {"Where", 1},
});

int kind(DType type) {
  if (is_floating(type)) return 2;
  return type == DType::kBool ? 0 : 1;
}

/// The wider of two types of one kind.
DType wider(DType a, DType b) {
  if (a == b) return a;
  if (kind(a) != kind(b)) return kind(a) > kind(b) ? a : b;
  // Of 16 bits each, yet neither holds the other.
  if (size_of(a) == size_of(b)) return kind(a) == 2 ? DType::kFloat32 : DType::kInt16;
  return size_of(a) > size_of(b) ? a : b;
}

DType common_type(const Lowering& s, size_t first) {
  DType tensors = DType::kUnknown;
  DType numbers = DType::kUnknown;
  for (size_t i = first; i < s.inputs.size(); ++i) {
    if (s.in(i) == kNone) continue;
    const Shape* shape = s.view.in_shape(static_cast<int>(i));
    DType& of = shape != nullptr && shape->empty() ? numbers : tensors;
    const DType type = s.out.dtype(s.in(i));
    of = of == DType::kUnknown ? type : wider(of, type);
  }
  if (tensors == DType::kUnknown) return numbers;
  if (numbers == DType::kUnknown || kind(numbers) <= kind(tensors)) return tensors;
  return kind(numbers) == 2 ? DType::kFloat32 : numbers;
}

}  // namespace

void promote(Lowering& s) {
  const std::string& op = s.node().op;
  if (!s.node().domain.empty()) return;
  if (op == "Clip" || op == "Pad") {
    for (size_t i = op == "Clip" ? 1 : 2; i < s.inputs.size(); ++i) {
      s.inputs[i] = s.out.cast(s.inputs[i], s.dtype());
    }
    return;
  }
  if (op == "Where") s.inputs[0] = s.out.cast(s.inputs[0], DType::kBool);
  const auto* found =
      std::ranges::find_if(kOperands, [&](const Operands& row) { return row.op == op; });
  if (found == kOperands.end()) return;
  const DType type = common_type(s, found->first);
  for (size_t i = found->first; i < s.inputs.size(); ++i) s.inputs[i] = s.out.cast(s.in(i), type);
}

}  // namespace parsimony::onnx_io
