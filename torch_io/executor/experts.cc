// Mixtures of experts: two layers each, of which the router chooses some for every token.
// @source onnxruntime, ContribOperators.md: MoE
#include <limits>

#include "parsimony/torch_io/executor/operators_impl.h"

namespace parsimony::executor {
namespace {

struct Experts {
  at::Tensor w1, b1;  ///< [e, f·i, h], [e, f·i] with f = 2 for gates beside what they gate
  at::Tensor w2, b2;  ///< [e, h, i], [e, h]
  at::Tensor w3, b3;  ///< as the first, or undefined
};

at::Tensor affine(const at::Tensor& x, const at::Tensor& w, const at::Tensor& b, int64_t expert) {
  const at::Tensor y = at::matmul(x, w[expert].t());
  return b.defined() ? y + b[expert] : y;
}

/// gate · sigmoid(alpha · gate) · (linear + beta), both within limits.
at::Tensor gated(const Call& call, const at::Tensor& gate, const at::Tensor& linear) {
  const double limit = call.real("swiglu_limit", std::numeric_limits<double>::infinity());
  const at::Tensor g = at::clamp_max(gate, limit);
  const at::Tensor l = at::clamp(linear, -limit, limit);
  return g * at::sigmoid(g * call.real("activation_alpha", 1)) *
         (l + call.real("activation_beta", 0));
}

at::Tensor activated(const Call& call, const at::Tensor& y, const at::Tensor& beside) {
  const std::string activation = call.text("activation_type", "relu");
  if (activation == "swiglu") {
    if (beside.defined()) return gated(call, y, beside);
    if (call.integer("swiglu_fusion", 0) == 1) {
      const at::Tensor pairs = y.unflatten(-1, {-1, 2});
      return gated(call, pairs.select(-1, 0), pairs.select(-1, 1));
    }
    const Tensors halves = y.chunk(2, -1);
    return gated(call, halves[0], halves[1]);
  }
  at::Tensor result = y;
  if (activation == "relu") {
    result = at::relu(y);
  } else if (activation == "gelu") {
    result = at::gelu(y, "tanh");
  } else if (activation == "silu") {
    result = at::silu(y);
  } else if (activation != "identity") {
    call.unsupported("has activation \"" + activation + "\"");
  }
  return beside.defined() ? result * beside : result;
}

/// [t, e]: the share of every expert in a token, 0 for those that were not chosen. If `normalised`,
/// those of a token add up to 1.
at::Tensor shares(const Call& call, bool normalised) {
  if (call.integer("use_sparse_mixer", 0) != 0) call.unsupported("mixes sparsely");
  const at::Tensor all = at::softmax(call.in(1), -1);
  const auto [chosen, which] = at::topk(all, call.integer("k", 1), -1);
  const at::Tensor weights = normalised ? chosen / chosen.sum(-1, true) : chosen;
  return at::zeros_like(all).scatter(-1, which, weights);
}

at::Tensor mixture(const Call& call, const Experts& of, bool normalised) {
  const at::Tensor x = call.in(0).flatten(0, -2);
  const at::Tensor share = shares(call, normalised);
  at::Tensor y = at::zeros_like(x);
  for (int64_t e = 0; e < of.w1.size(0); ++e) {
    const at::Tensor beside = of.w3.defined() ? affine(x, of.w3, of.b3, e) : at::Tensor();
    const at::Tensor inner = activated(call, affine(x, of.w1, of.b1, e), beside);
    y = y + affine(inner, of.w2, of.b2, e) * share.select(1, e).unsqueeze(1);
  }
  return y.reshape(call.in(0).sizes());
}

}  // namespace

Tensors experts(const Call& call) {
  const bool normalised = call.integer("normalize_routing_weights", 0) != 0;
  return {mixture(call, {call.in(2), call.in(3), call.in(4), call.in(5), call.in(6), call.in(7)},
                  normalised)};
}

namespace {

/// [e, rows, columns] of codes with a scale per row, or per block of a row.
at::Tensor real_matrices(const Call& call, size_t weight, size_t scale, size_t zero) {
  if (!call.has_in(weight)) return {};
  const int64_t bits = call.integer("expert_weight_bits", 4);
  if (bits != 2 && bits != 4 && bits != 8) call.unsupported("has codes that lie across bytes");
  const int64_t block = call.integer("block_size", 0);
  at::Tensor scales = call.in(scale);
  const at::Tensor codes = codes_in(call.in(weight), bits).to(scales.scalar_type());
  at::Tensor zeros = call.has_in(zero)
                         ? codes_in(call.in(zero), bits).to(scales.scalar_type())
                         : at::full_like(scales, static_cast<double>(1 << (bits - 1)));
  const auto spread = [&](const at::Tensor& each) {
    return block > 0 ? each.repeat_interleave(block, -1) : each.unsqueeze(-1);
  };
  return (codes - spread(zeros)) * spread(scales);
}

}  // namespace

// @source onnxruntime, ContribOperators.md: QMoE
Tensors coded_experts(const Call& call) {
  if (call.text("quant_type", "int") != "int") call.unsupported("has codes that are no integers");
  if (call.has_in(14)) call.unsupported("has other shares than the router's");
  return {mixture(call,
                  {real_matrices(call, 2, 3, 11), call.in(4), real_matrices(call, 5, 6, 12),
                   call.in(7), real_matrices(call, 8, 9, 13), call.in(10)},
                  true)};
}

/// A channel of the result is there if the second layers have it.
Tensors expert_presence(const Operator& op, const Call& call, const Tensors& outputs) {
  const size_t second = op.op == "MoE" ? 4 : 5;
  return {(call.presence_numbers(second).amax({0, 2}) > 0.5).expand(outputs[0].sizes())};
}

}  // namespace parsimony::executor
