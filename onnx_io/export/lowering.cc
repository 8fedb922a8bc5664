#include <algorithm>
#include <array>
#include <utility>

#include "parsimony/graph/attributes.h"
#include "parsimony/onnx_io/export/export.h"
#include "parsimony/onnx_io/export/lowering_impl.h"

namespace parsimony::onnx_io {

ExportBuilder::ExportBuilder() : GraphBuilder(kExportOpset, '/') {}

ValueId ExportBuilder::tensor(const std::string& name, DType dtype, const Shape& dims,
                              std::vector<std::byte> bytes) {
  return GraphBuilder::tensor(is_taken(name) ? unused_name() : name, dtype, dims, std::move(bytes));
}

std::vector<ValueId> ExportBuilder::emit_many(const std::string& op, std::vector<ValueId> inputs,
                                              size_t outputs, NodeAttributes attributes) {
  while (!inputs.empty() && inputs.back() == kNone) inputs.pop_back();
  std::vector<ValueId> results =
      GraphBuilder::emit_many(op, std::move(inputs), outputs, std::move(attributes));
  const auto* to = attr_if<int64_t>(graph().nodes.back(), "to");
  if (op == "Cast" && to != nullptr) set_dtype(results.front(), dtype_of_onnx(*to));
  return results;
}

ValueId ExportBuilder::cast(ValueId value, DType type) {
  if (value == kNone || dtype(value) == type || type == DType::kUnknown) return value;
  if (is_weight(value) && weight_of(value).count() == 1) {
    const Weight& weight = weight_of(value);
    const HostTensor from = to_host(weight);
    const bool truth = from.number(0) != 0;
    HostTensor to = type == DType::kBool ? HostTensor::scalar(truth ? 1 : 0, type)
                                         : HostTensor::of(from.number(0), type);
    to.dims = weight.dims;
    return constant(to);
  }
  return emit("Cast", {value}, {{"to", int64_t{onnx_number(type)}}});
}

namespace {

/// An operator that has to be lowered to ONNX opset 17; ONNX operators that are not listed are
/// written unchanged.
struct Entry {
  std::string_view domain;
  std::string_view op;
  Lower lower;
};

// Sorted by domain and name.
constexpr auto kTable = std::to_array<Entry>({
    {"", "And", lower_logical},
    {"", "AveragePool", lower_average_pool},
    {"", "ConstantOfShape", lower_filled},
    {"", "DFT", lower_dft},
    {"", "Gelu", lower_gelu},
    {"", "GroupNormalization", lower_group_normalization},
    {"", "MaxPool", lower_max_pool},
    {"", "Mish", lower_mish},
    {"", "Mod", lower_mod},
    {"", "Not", lower_logical},
    {"", "Or", lower_logical},
    {"", "ReduceL1", lower_reduce},
    {"", "ReduceL2", lower_reduce},
    {"", "ReduceLogSumExp", lower_reduce},
    {"", "ReduceMax", lower_reduce},
    {"", "ReduceMean", lower_reduce},
    {"", "ReduceMin", lower_reduce},
    {"", "ReduceProd", lower_reduce},
    {"", "ReduceSum", lower_reduce_sum},
    {"", "Resize", lower_resize},
    {"", "Xor", lower_logical},
    {"torch", "AdaptiveAveragePool", lower_adaptive_average_pool},
    {"torch", "AdaptiveMaxPool", lower_adaptive_max_pool},
    {"torch", "Gru", lower_recurrent},
    {"torch", "Lstm", lower_recurrent},
    {"torch", "Rnn", lower_recurrent},
});

constexpr std::pair<std::string_view, std::string_view> key(const Entry& entry) {
  return {entry.domain, entry.op};
}
static_assert(std::ranges::is_sorted(kTable, {}, key));

}  // namespace

Lower find_lowering(std::string_view domain, std::string_view op) {
  const auto* found = std::ranges::lower_bound(kTable, std::pair(domain, op), {}, key);
  const bool same = found != kTable.end() && found->domain == domain && found->op == op;
  return same ? found->lower : nullptr;
}

namespace {

// Torch promotes the operands of an elementwise operator to one type; in ONNX this has to be
// explicit. A number (rank 0) changes the type of a tensor only to a wider category: boolean,
// integer, floating point.
// @source c10::promoteTypes, at::result_type
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

/// Returns the wider of two types of one kind.
DType wider(DType a, DType b) {
  if (a == b) return a;
  if (kind(a) != kind(b)) return kind(a) > kind(b) ? a : b;
  // Both have 16 bits, and neither contains the other.
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
