// Fused operators of com.microsoft and of ONNX from opset 23 on; mixtures of experts.
#include <cmath>
#include <limits>

#include "parsimony/base/ranges.h"
#include "parsimony/torch_io/executor/operators_impl.h"

namespace parsimony::executor {
namespace {

/// x sigmoid(alpha x)
at::Tensor gated(const Call& call, double usual) {
  const double alpha = call.real("alpha", usual);
  return alpha == 1 ? at::silu(call.in(0)) : call.in(0) * at::sigmoid(call.in(0) * alpha);
}

/// LayerNormalization of `x` where present, with scale and bias from the specified operands.
Tensors normalised(const Call& call, const at::Tensor& x, const at::Tensor& present, size_t scale,
                   int bias) {
  Tensors operands{x, call.in(scale)};
  if (bias >= 0 && call.has_in(bias)) operands.push_back(call.in(bias));
  Call inner = call.on(std::move(operands));
  inner.present = {present};
  return layer_normalization(inner);
}

at::Tensor root_mean_square(const Call& call, const at::Tensor& x, const at::Tensor& present,
                            const at::Tensor& scale) {
  const Ints axes = successive(wrapped(call.integer("axis", -1), x.dim()), x.dim());
  const at::Tensor mean = mean_of(at::square(x), present, axes);
  return x * at::rsqrt(mean + call.real("epsilon", 1e-5)) * scale;
}

/// The sum of input, skip and bias, present where all of them are.
struct Skipped {
  at::Tensor sum;
  at::Tensor present;
};

Skipped skipped(const Call& call, size_t bias) {
  Skipped result{call.in(0) + call.in(1), both(call.presence(0), call.presence(1))};
  if (call.has_in(bias)) {
    result.sum = result.sum + call.in(bias);
    result.present = both(result.present, call.presence(bias));
  }
  if (result.present.defined()) result.present = result.present.expand(result.sum.sizes());
  return result;
}

Tensors with_sum(const Call& call, Tensors normal, const at::Tensor& sum) {
  normal.resize(std::min<size_t>(call.outputs(), 4));
  if (normal.size() > 3) normal[3] = sum;
  return normal;
}

constexpr double kNotGiven = std::numeric_limits<double>::quiet_NaN();

/// Applies the activation of a fused product; bounds of Clip are its parameters.
at::Tensor activated(const Call& call, const at::Tensor& y, const std::vector<double>& numbers) {
  const std::string name = call.text("activation", "");
  if (name.empty()) return y;
  const auto given = [&](size_t i) {
    return i < numbers.size() ? std::optional(numbers[i]) : std::nullopt;
  };
  if (name == "Clip") return at::clamp(y, numbers.at(0), numbers.at(1));
  return activation_of(call, name, given(0), given(1))(y);
}

}  // namespace

Tensors biased_gelu(const Call& call) {
  const at::Tensor x = call.has_in(1) ? call.in(0) + call.in(1) : call.in(0);
  return {at::gelu(x, "none")};
}

/// GELU by tanh. @source onnxruntime, ContribOperators.md, FastGelu
Tensors fast_gelu(const Call& call) {
  const at::Tensor x = call.has_in(1) ? call.in(0) + call.in(1) : call.in(0);
  return {at::gelu(x, "tanh")};
}

Tensors quick_gelu(const Call& call) { return {gated(call, 1.702)}; }

Tensors swish(const Call& call) { return {gated(call, 1)}; }

Tensors swiglu(const Call& call) { return {gated(call, 1) * call.in(1)}; }

Tensors fused_conv(const Call& call) {
  at::Tensor y = conv(call.on({call.in(0), call.in(1), call.in(2)})).front();
  if (call.has_in(3)) y = y + call.in(3);
  const std::vector<double> numbers = call.reals("activation_params");
  return {activated(call, y, numbers)};
}

Tensors fused_gemm(const Call& call) {
  std::vector<double> numbers;
  for (const char* name : {"activation_alpha", "activation_beta"}) {
    const double number = call.real(name, kNotGiven);
    if (!std::isnan(number)) numbers.push_back(number);
  }
  return {activated(call, gemm(call).front(), numbers)};
}

Tensors gemm_fast_gelu(const Call& call) {
  const at::Tensor product = at::matmul(call.in(0), call.in(1));
  return {at::gelu(call.has_in(2) ? product + call.in(2) : product, "tanh")};
}

Tensors fused_matmul(const Call& call) {
  if (call.integer("transBatchA", 0) != 0 || call.integer("transBatchB", 0) != 0) {
    call.unsupported("transBatchA and transBatchB are not supported");
  }
  const auto turned = [&](size_t i, std::string_view attribute) {
    return call.integer(attribute, 0) != 0 ? call.in(i).transpose(-1, -2) : call.in(i);
  };
  return {at::matmul(turned(0, "transA"), turned(1, "transB")) * call.real("alpha", 1)};
}

Tensors rms_normalization(const Call& call) {
  return {root_mean_square(call, call.in(0), call.presence(0), call.in(1))};
}

Tensors skip_layer_normalization(const Call& call) {
  const Skipped skip = skipped(call, 4);
  return with_sum(call, normalised(call, skip.sum, skip.present, 2, 3), skip.sum);
}

Tensors skip_rms_normalization(const Call& call) {
  const Skipped skip = skipped(call, 3);
  Tensors results{root_mean_square(call, skip.sum, skip.present, call.in(2))};
  return with_sum(call, std::move(results), skip.sum);
}

Tensors embed_layer_normalization(const Call& call) {
  const at::Tensor tokens = call.in(0).to(at::kLong);
  const int64_t length = tokens.size(1);
  at::Tensor x = call.in(2).index({tokens});
  at::Tensor present;
  if (call.presence(2).defined()) present = call.presence(2).index({tokens});
  x = x + (call.has_in(8) ? call.in(3).index({call.in(8).to(at::kLong)})
                          : call.in(3).narrow(0, 0, length));
  if (call.has_in(1) && call.has_in(4)) x = x + call.in(4).index({call.in(1).to(at::kLong)});
  const at::Tensor lengths = call.has_in(7) ? (call.in(7) == 1).sum(1).to(at::kInt)
                                            : at::zeros({tokens.size(0)}, at::kInt);
  return {normalised(call, x, present, 5, 6).front(), lengths, x};
}

/// Present where the table of tokens is, like the sums before normalisation.
Tensors embedded(const Operator& /*op*/, const Call& call, const Tensors& outputs) {
  Tensors results(outputs.size());
  if (!call.presence(2).defined()) return results;
  results[0] = call.presence(2).index({call.in(0).to(at::kLong)});
  if (results.size() > 2) results[2] = results[0];
  return results;
}

/// Presence of input and skip, for their sum.
Tensors skipped_presence(const Operator& op, const Call& call, const Tensors& outputs) {
  Call two = call;
  two.inputs.resize(2);
  return elementwise(op, two, outputs);
}

// Mixtures of experts: two layers each; the router selects some experts for every token.
// @source onnxruntime, ContribOperators.md: MoE

namespace {

struct Experts {
  at::Tensor w1, b1;  ///< [e, f·i, h], [e, f·i] with f = 2 if gates are packed with their operands
  at::Tensor w2, b2;  ///< [e, h, i], [e, h]
  at::Tensor w3, b3;  ///< like the first, or undefined
};

at::Tensor projected(const at::Tensor& x, const at::Tensor& w, const at::Tensor& b,
                     int64_t expert) {
  const at::Tensor y = at::matmul(x, w[expert].t());
  return b.defined() ? y + b[expert] : y;
}

/// Computes gate · sigmoid(alpha · gate) · (linear + beta), both within limits.
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
    call.unsupported("activation \"" + activation + "\" is not supported");
  }
  return beside.defined() ? result * beside : result;
}

/// Returns the share of every expert in each token, [t, e], 0 for experts that were not selected.
/// Absent ones never are. If `normalised`, shares of a token sum to 1.
at::Tensor shares(const Call& call, bool normalised) {
  if (call.integer("use_sparse_mixer", 0) != 0)
    call.unsupported("use_sparse_mixer is not supported");
  constexpr double kNever = -std::numeric_limits<double>::infinity();
  const at::Tensor all = at::softmax(call.filled(1, kNever), -1);
  const auto [chosen, which] = at::topk(all, call.integer("k", 1), -1);
  const at::Tensor weights = normalised ? chosen / chosen.sum(-1, true) : chosen;
  return at::zeros_like(all).scatter(-1, which, weights);
}

at::Tensor mixture(const Call& call, const Experts& of, bool normalised) {
  const at::Tensor x = call.in(0).flatten(0, -2);
  const at::Tensor share = shares(call, normalised);
  at::Tensor y = at::zeros_like(x);
  for (int64_t e = 0; e < of.w1.size(0); ++e) {
    const at::Tensor beside = of.w3.defined() ? projected(x, of.w3, of.b3, e) : at::Tensor();
    const at::Tensor inner = activated(call, projected(x, of.w1, of.b1, e), beside);
    y = y + projected(inner, of.w2, of.b2, e) * share.select(1, e).unsqueeze(1);
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

/// Decodes [e, rows, columns] with a scale per row, or per block of a row.
at::Tensor real_matrices(const Call& call, size_t weight, size_t scale, size_t zero) {
  if (!call.has_in(weight)) return {};
  const int64_t bits = call.integer("expert_weight_bits", 4);
  if (bits != 2 && bits != 4 && bits != 8) call.unsupported("codes across bytes are not supported");
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
  if (call.text("quant_type", "int") != "int")
    call.unsupported("codes other than integers are not supported");
  if (call.has_in(14)) call.unsupported("separate router weights are not supported");
  return {mixture(call,
                  {real_matrices(call, 2, 3, 11), call.in(4), real_matrices(call, 5, 6, 12),
                   call.in(7), real_matrices(call, 8, 9, 13), call.in(10)},
                  true)};
}

/// A channel of the result is present if the second layers have it.
Tensors expert_presence(const Operator& op, const Call& call, const Tensors& outputs) {
  const size_t second = op.op == "MoE" ? 4 : 5;
  return {(call.presence_numbers(second).amax({0, 2}) > 0.5).expand(outputs[0].sizes())};
}

}  // namespace parsimony::executor
