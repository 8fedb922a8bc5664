// Products of matrices: linear, addmm, matmul, einsum, and the embedding, which is one by one-hot
// vectors.
#include <utility>

#include "parsimony/base/ranges.h"
#include "parsimony/torch_io/script/lowerings_impl.h"

namespace parsimony::torch_io::script {
namespace {

ValueId scaled(Call& call, ValueId value, double factor) {
  return factor == 1 ? value : call.out.emit("Mul", {{value}, {call.out.number(factor)}});
}

}  // namespace

ValueId transposed(Call& call, ValueId value) {
  const size_t rank = call.rank(value);
  call.require(rank >= 2);
  std::vector<int64_t> perm = successive(0, rank);
  std::swap(perm[rank - 1], perm[rank - 2]);
  const ValueId result = permuted(call, value, perm);
  call.out.alias(result, value);
  return result;
}

ValueId matrix_behind(Call& call, ValueId value) {
  const Node* producer = call.out.producer(value);
  if (producer == nullptr || producer->op != "Transpose") return kNone;
  const ValueId behind = producer->inputs[0];
  const bool matrix = call.out.graph().value(behind).weight != kNone && call.rank(behind) == 2;
  return matrix ? behind : kNone;
}

/// linear(x, w[o i], b): Gemm for a matrix, else MatMul with the transposed weight.
void lower_linear(Call& call) {
  const Operand x = call.tensor(0);
  const Operand w = call.tensor(1);
  const Operand b = call.optional_tensor(2);
  call.require(call.rank(w.value) == 2);
  if (call.rank(x.value) == 2) {
    call.give_node("Gemm", {x, w, b}, {{"transB", int64_t{1}}});
    return;
  }
  const ValueId product = call.out.emit("MatMul", {x, {transposed(call, w.value)}});
  call.give(b.value == kNone ? product : call.out.emit("Add", {{product}, b}));
}

/// addmm(c, a, b, beta, alpha) = beta c + alpha a b
void lower_addmm(Call& call) {
  const Operand b = call.tensor(2);
  const ValueId matrix = matrix_behind(call, b.value);
  Attributes attributes;
  if (matrix != kNone) attributes.with("transB", int64_t{1});
  if (call.number(4, 1) != 1) attributes.with("alpha", call.number(4));
  if (call.number(3, 1) != 1) attributes.with("beta", call.number(3));
  call.give_node("Gemm", {call.tensor(1), matrix == kNone ? b : Operand{matrix}, call.tensor(0)},
                 std::move(attributes));
}

/// addmv(c, a, v, beta, alpha) = beta c + alpha a v
void lower_addmv(Call& call) {
  const ValueId product = call.out.emit("MatMul", {call.tensor(1), call.tensor(2)});
  const ValueId addend = scaled(call, call.tensor(0).value, call.number(3, 1));
  call.give_node("Add", {{addend}, {scaled(call, product, call.number(4, 1))}});
}

void lower_matmul(Call& call) { call.give_node("MatMul", {call.tensor(0), call.tensor(1)}); }

/// baddbmm(c, a, b, beta, alpha)
void lower_baddbmm(Call& call) {
  const ValueId product = call.out.emit("MatMul", {call.tensor(1), call.tensor(2)});
  const double beta = call.number(3, 1);
  const ValueId scaled_product = scaled(call, product, call.number(4, 1));
  if (beta == 0) return call.give(scaled_product);
  const Operand c = call.tensor(0);
  const Operand addend = beta == 1 ? c : Operand{scaled(call, c.value, beta)};
  call.give_node("Add", {{scaled_product}, addend});
}

/// einsum(equation, tensors)
void lower_einsum(Call& call) {
  std::string equation = call.text(0);
  std::erase(equation, ' ');
  call.give_node("Einsum", call.tensors(1), {{"equation", equation}});
}

/// embedding(table, indices, …)
void lower_embedding(Call& call) {
  call.give_node("Gather", {call.tensor(0), call.tensor(1)}, {{"axis", int64_t{0}}});
}

}  // namespace parsimony::torch_io::script
