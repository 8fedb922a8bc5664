// Operators of com.microsoft, and of ONNX from opset 23 on, that do what several others do in a
// row.
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

/// LayerNormalization of `x` where it is present, with scale and bias of the operands named.
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

/// The sum of input, skip and bias, and where all of them are present.
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

/// Of a product that an activation follows; bounds of Clip are its parameters.
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

/// By tanh. @source onnxruntime, ContribOperators.md, FastGelu
Tensors fast_gelu(const Call& call) {
  const at::Tensor x = call.has_in(1) ? call.in(0) + call.in(1) : call.in(0);
  return {at::gelu(x, "tanh")};
}

Tensors quick_gelu(const Call& call) { return {gated(call, 1.702)}; }

Tensors swish(const Call& call) { return {gated(call, 1)}; }

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

Tensors fused_matmul(const Call& call) {
  if (call.integer("transBatchA", 0) != 0 || call.integer("transBatchB", 0) != 0) {
    call.unsupported("exchanges batch and rows");
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

/// Present where the table of tokens is, as are the sums before they are normalised.
Tensors embedded(const Operator& /*op*/, const Call& call, const Tensors& outputs) {
  Tensors results(outputs.size());
  if (!call.presence(2).defined()) return results;
  results[0] = call.presence(2).index({call.in(0).to(at::kLong)});
  if (results.size() > 2) results[2] = results[0];
  return results;
}

/// Input and skip, as the sum of both.
Tensors skipped_presence(const Operator& op, const Call& call, const Tensors& outputs) {
  Call two = call;
  two.inputs.resize(2);
  return elementwise(op, two, outputs);
}

}  // namespace parsimony::executor
