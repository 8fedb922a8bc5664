// scaled_dot_product_attention(q, k, v, mask, dropout, causal, scale):
// softmax(q kᵀ / sqrt(d) + mask) v
#include <cmath>

#include "parsimony/torch_io/script/lowerings_impl.h"
#include "parsimony/torch_io/script/origins_impl.h"

namespace parsimony::torch_io::script {
namespace {

constexpr size_t kMask = 3;
constexpr size_t kCausal = 5;
constexpr size_t kScale = 6;

/// Minus infinity above the diagonal of [rows, columns].
ValueId causal_mask(Call& call, ValueId q, ValueId k) {
  const auto rank = static_cast<int64_t>(call.rank(q));
  const ValueId sizes = call.out.list_of(std::vector<Element>{
      {0, call.out.size_of_dim(q, rank - 2), {}}, {0, call.out.size_of_dim(k, rank - 2), {}}});
  const ValueId full =
      call.out.emit("ConstantOfShape", {{sizes}}, {{"value", std::vector<double>{-HUGE_VAL}}});
  call.out.graph().value(full).dtype = DType::kFloat32;
  return call.out.emit("Trilu", {{full}, {call.out.integer(1)}}, {{"upper", int64_t{1}}});
}

}  // namespace

void lower_attention(Call& call) {
  const Operand q = call.tensor(0);
  const Operand k = call.tensor(1);
  const size_t rank = call.rank(q.value);
  call.require(rank >= 2 && call.rank(k.value) == rank && !call.flag(kScale + 1));
  const Graph& graph = call.out.graph();
  call.require(call.none(kMask) || graph.value(call.tensor(kMask).value).dtype != DType::kBool);
  // The operator would take the square root of what is left: the scale is to stay.
  const double width = static_cast<double>(call.shape(q.value).back());
  const double scale = call.none(kScale) ? 1 / std::sqrt(width) : call.number(kScale);
  if (call.none(kScale)) {
    call.out.origins().frozen.push_back(
        {call.place(kScale), q.value, static_cast<int>(rank) - 1, scale});
  }
  const ValueId product = call.out.emit("MatMul", {q, {transposed(call, k.value)}});
  ValueId scores = call.out.emit("Mul", {{product}, {call.out.number(scale)}});
  if (!call.none(kMask)) scores = call.out.emit("Add", {{scores}, call.tensor(kMask)});
  if (call.flag(kCausal)) {
    scores = call.out.emit("Add", {{scores}, {causal_mask(call, q.value, k.value)}});
  }
  const ValueId weights = call.out.emit("Softmax", {{scores}}, {{"axis", int64_t{-1}}});
  call.give(call.out.emit("MatMul", {{weights}, call.tensor(2)}));
}

}  // namespace parsimony::torch_io::script
