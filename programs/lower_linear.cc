// Matrix products: linear, addmm, matmul, einsum, attention, and embedding, a product with one-hot
// vectors.
#include <cmath>
#include <utility>

#include "parsimony/base/ranges.h"
#include "parsimony/programs/call.h"
#include "parsimony/programs/sources.h"

namespace parsimony::programs {
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

ValueId underlying_matrix(Call& call, ValueId value) {
  const Node* producer = call.out.producer(value);
  if (producer == nullptr || producer->op != "Transpose") return kNone;
  const ValueId after = producer->inputs[0];
  const bool matrix = call.out.graph().value(after).weight != kNone && call.rank(after) == 2;
  return matrix ? after : kNone;
}

/// linear(x, w[o i], b): Gemm for a matrix, else MatMul with the transposed weight.
void lower_linear(Call& call) {
  const Operand x = call.tensor(0);
  const Operand w = call.tensor(1);
  const Operand b = call.optional_tensor(2);
  call.require(call.rank(w.value) == 2);
  if (call.rank(x.value) == 2) {
    call.set_node("Gemm", {x, w, b}, {{"transB", int64_t{1}}});
    return;
  }
  const ValueId product = call.out.emit("MatMul", {x, {transposed(call, w.value)}});
  call.set_result(b.value == kNone ? product : call.out.emit("Add", {{product}, b}));
}

/// addmm(c, a, b, beta, alpha) = beta c + alpha a b
void lower_addmm(Call& call) {
  const Operand b = call.tensor(2);
  const ValueId matrix = underlying_matrix(call, b.value);
  Attributes attributes;
  if (matrix != kNone) attributes.with("transB", int64_t{1});
  if (call.number(4, 1) != 1) attributes.with("alpha", call.number(4));
  if (call.number(3, 1) != 1) attributes.with("beta", call.number(3));
  call.set_node("Gemm", {call.tensor(1), matrix == kNone ? b : Operand{matrix}, call.tensor(0)},
                std::move(attributes));
}

/// addmv(c, a, v, beta, alpha) = beta c + alpha a v
void lower_addmv(Call& call) {
  const ValueId product = call.out.emit("MatMul", {call.tensor(1), call.tensor(2)});
  const ValueId addend = scaled(call, call.tensor(0).value, call.number(3, 1));
  call.set_node("Add", {{addend}, {scaled(call, product, call.number(4, 1))}});
}

void lower_matmul(Call& call) { call.set_node("MatMul", {call.tensor(0), call.tensor(1)}); }

/// _grouped_mm(x, w, ends, bias, dtype), grouped_mm_fallback(x, w, ends): rows of x up to ends[0]
/// times w[0], from there up to ends[1] times w[1], …
void lower_grouped_mm(Call& call) {
  const Operand x = call.tensor(0);
  const Operand w = call.tensor(1);
  const Operand ends = call.tensor(2);
  call.require(call.rank(x.value) == 2 && call.rank(w.value) == 3 && call.rank(ends.value) == 1);
  for (size_t i = 3; i < call.size(); ++i) call.require(call.none(i));
  Builder& out = call.out;
  out.pin_axis(w.value, 0);
  const auto with_axis = [&](ValueId value, int64_t axis) {
    return Operand{out.emit("Unsqueeze", {{value}, {out.integers({axis})}})};
  };
  const ValueId limits = out.cast(ends, DType::kInt64);
  const ValueId all_but_last = out.slice({limits}, 0, out.integers({0}), out.integers({-1}));
  const ValueId begins =
      out.emit("Concat", {{out.integers({0})}, {all_but_last}}, {{"axis", int64_t{0}}});
  const ValueId rows =
      out.emit("Range", {{out.integer(0)}, {out.size_of_dim(x.value, 0)}, {out.integer(1)}});
  const ValueId begun = out.emit("GreaterOrEqual", {{rows}, with_axis(begins, 1)});
  const ValueId goes_on = out.emit("Less", {{rows}, with_axis(limits, 1)});
  const ValueId own = out.emit("And", {{begun}, {goes_on}});  // [experts, rows]
  const ValueId products = out.emit("MatMul", {with_axis(x.value, 0), w});
  const ValueId chosen = out.emit("Where", {with_axis(own, 2), {products}, {out.number(0)}});
  call.set_node("ReduceSum", {{chosen}, {out.integers({0})}}, {{"keepdims", int64_t{0}}});
}

/// baddbmm(c, a, b, beta, alpha)
void lower_baddbmm(Call& call) {
  const ValueId product = call.out.emit("MatMul", {call.tensor(1), call.tensor(2)});
  const double beta = call.number(3, 1);
  const ValueId scaled_product = scaled(call, product, call.number(4, 1));
  if (beta == 0) return call.set_result(scaled_product);
  const Operand c = call.tensor(0);
  const Operand addend = beta == 1 ? c : Operand{scaled(call, c.value, beta)};
  call.set_node("Add", {{scaled_product}, addend});
}

/// einsum(equation, tensors)
void lower_einsum(Call& call) {
  std::string equation = call.text(0);
  std::erase(equation, ' ');
  call.set_node("Einsum", call.tensors(1), {{"equation", equation}});
}

/// embedding(table, indices, …)
void lower_embedding(Call& call) {
  call.set_node("Gather", {call.tensor(0), call.tensor(1)}, {{"axis", int64_t{0}}});
}

// scaled_dot_product_attention(q, k, v, mask, dropout, causal, scale):
// softmax(q kᵀ / sqrt(d) + mask) v

namespace {

/// Returns minus infinity above the diagonal of [rows, columns].
ValueId causal_mask(Call& call, ValueId q, ValueId k) {
  const auto rank = static_cast<int64_t>(call.rank(q));
  const ValueId sizes = call.out.list_of(std::vector<Element>{
      {0, call.out.size_of_dim(q, rank - 2), {}}, {0, call.out.size_of_dim(k, rank - 2), {}}});
  const ValueId full =
      call.out.emit("ConstantOfShape", {{sizes}}, {{"value", std::vector<double>{-HUGE_VAL}}});
  call.out.graph().value(full).dtype = DType::kFloat32;
  return call.out.emit("Trilu", {{full}, {call.out.integer(1)}}, {{"upper", int64_t{1}}});
}

/// Positions of the arguments after q, k and v.
struct Positions {
  size_t mask, causal, scale;
};

/// Returns the addend of the scores: a boolean mask marks visible keys.
Operand addend_of(Call& call, const Operand& mask) {
  if (call.out.graph().value(mask.value).dtype != DType::kBool) return mask;
  return {call.out.emit("Where", {mask, {call.out.number(0)}, {call.out.number(-HUGE_VAL)}})};
}

void attend(Call& call, const Positions& at) {
  const Operand q = call.tensor(0);
  const Operand k = call.tensor(1);
  const size_t rank = call.rank(q.value);
  call.require(rank >= 2 && call.rank(k.value) == rank);
  // The operator would use the square root of the pruned width: the scale must not change.
  const double width = static_cast<double>(call.shape(q.value).back());
  const double scale = call.none(at.scale) ? 1 / std::sqrt(width) : call.number(at.scale);
  if (call.none(at.scale)) {
    call.out.sources().frozen.push_back(
        {call.location(at.scale), q.value, static_cast<int>(rank) - 1, scale});
  }
  const ValueId product = call.out.emit("MatMul", {q, {transposed(call, k.value)}});
  ValueId scores =
      call.out.emit("Mul", {{product}, {call.out.number(scale), call.location(at.scale)}});
  if (!call.none(at.mask)) {
    scores = call.out.emit("Add", {{scores}, addend_of(call, call.tensor(at.mask))});
  }
  if (call.flag(at.causal)) {
    scores = call.out.emit("Add", {{scores}, {causal_mask(call, q.value, k.value)}});
  }
  const ValueId weights = call.out.emit("Softmax", {{scores}}, {{"axis", int64_t{-1}}});
  call.set_node("MatMul", {{weights}, call.tensor(2)});
}

}  // namespace

void lower_attention(Call& call) {
  constexpr size_t kGrouped = 7;
  call.require(!call.flag(kGrouped));
  attend(call, {.mask = 3, .causal = 5, .scale = 6});
}

/// (q, k, v, dropout, causal, mask, scale) -> (y, logsumexp); the second is unknown
void lower_flash_attention(Call& call) { attend(call, {.mask = 5, .causal = 4, .scale = 6}); }

namespace {

/// Multiplies by the weight in that argument; the bias is the next one.
ValueId linear(Call& call, ValueId x, size_t weight) {
  const ValueId product =
      call.out.emit("MatMul", {{x}, {transposed(call, call.tensor(weight).value)}});
  return call.out.emit("Add", {{product}, call.tensor(weight + 1)});
}

struct Widths {
  int64_t model;
  int64_t heads;
};

/// Self-attention of x; the projections of q, k and v are one, at argument `in`, the output
/// projection is at `in + 2`. The operator derives all sizes from the width: none of them may
/// change.
ValueId attend_to_itself(Call& call, ValueId x, const Widths& widths, size_t in) {
  const auto [width, heads] = widths;
  call.require(call.rank(x) == 3 && heads > 0 && width % heads == 0);
  const int64_t each = width / heads;
  const ValueId sizes = call.out.integers({width, width, width});
  const auto parts =
      call.out.emit_many("Split", {{linear(call, x, in)}, {sizes}}, 3, {{"axis", int64_t{2}}});
  const auto apart = [&, heads = heads](ValueId part, const std::vector<int64_t>& perm) {
    return permuted(call, reshaped(call, part, {0, 0, heads, each}), perm);
  };
  const double scale = 1 / std::sqrt(static_cast<double>(each));
  const ValueId q =
      call.out.emit("Mul", {{apart(parts[0], {0, 2, 1, 3})}, {call.out.number(scale)}});
  const ValueId product = call.out.emit("MatMul", {{q}, {apart(parts[1], {0, 2, 3, 1})}});
  const ValueId weights = call.out.emit("Softmax", {{product}}, {{"axis", int64_t{-1}}});
  const ValueId mixed = call.out.emit("MatMul", {{weights}, {apart(parts[2], {0, 2, 1, 3})}});
  const ValueId together = reshaped(call, permuted(call, mixed, {0, 2, 1, 3}), {0, 0, width});
  const ValueId y = linear(call, together, in + 2);
  call.out.pin(call.op, {x, call.tensor(in).value, call.tensor(in + 2).value, y});
  return y;
}

}  // namespace

/// _native_multi_head_attention(q, k, v, width, heads, w[3 d, d], b, w_out, b_out, mask,
/// need_weights, average, mask_type) -> (y, weights): called by nn.MultiheadAttention in evaluation
/// mode
void lower_native_attention(Call& call) {
  const ValueId x = call.tensor(0).value;
  const bool of_itself = call.tensor(1).value == x && call.tensor(2).value == x;
  call.require(of_itself && call.none(9) && !call.flag(10));
  call.set_result(attend_to_itself(call, x, {call.integer(3), call.integer(4)}, 5));
}

/// _transformer_encoder_layer_fwd(x, width, heads, w[3 d, d], b, w_out, b_out, gelu, norm_first,
/// eps, gain 1, shift 1, gain 2, shift 2, w 1, b 1, w 2, b 2, mask, mask_type): called by
/// nn.TransformerEncoderLayer in evaluation mode
void lower_encoder_layer(Call& call) {
  const auto normalised = [&](ValueId x, size_t gain) {
    return call.out.emit("LayerNormalization", {{x}, call.tensor(gain), call.tensor(gain + 1)},
                         {{"axis", int64_t{-1}}, {"epsilon", call.number(9)}});
  };
  const auto feed = [&](ValueId x) {
    const ValueId inner = linear(call, x, 14);
    return linear(call, call.out.emit(call.flag(7) ? "Gelu" : "Relu", {{inner}}), 16);
  };
  call.require(call.none(18));
  const bool first = call.flag(8);
  ValueId x = call.tensor(0).value;
  const ValueId attended =
      attend_to_itself(call, first ? normalised(x, 10) : x, {call.integer(1), call.integer(2)}, 3);
  x = call.out.emit("Add", {{x}, {attended}});
  if (!first) x = normalised(x, 10);
  const ValueId fed = feed(first ? normalised(x, 12) : x);
  x = call.out.emit("Add", {{x}, {fed}});
  call.set_result(first ? x : normalised(x, 12));
}

}  // namespace parsimony::programs
