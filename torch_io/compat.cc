#include "parsimony/torch_io/compat.h"

#include <ATen/ATen.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <torch/library.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <tuple>
#include <vector>

namespace parsimony::torch_io {
namespace {

using Maybe = c10::optional<at::Tensor>;

/// @source documentation of torch.nn.functional.scaled_dot_product_attention
at::Tensor attention(const at::Tensor& q, const at::Tensor& key, const at::Tensor& value,
                     const Maybe& mask, double /*dropout*/, bool causal,
                     c10::optional<double> scale, bool grouped) {
  constexpr double kNever = -std::numeric_limits<double>::infinity();
  at::Tensor k = key;
  at::Tensor v = value;
  if (grouped) {
    k = k.repeat_interleave(q.size(-3) / k.size(-3), -3);
    v = v.repeat_interleave(q.size(-3) / v.size(-3), -3);
  }
  const double factor = scale.value_or(1 / std::sqrt(static_cast<double>(q.size(-1))));
  at::Tensor scores = at::matmul(q, k.transpose(-2, -1)) * factor;
  if (causal) {
    const at::Tensor later =
        at::ones({q.size(-2), k.size(-2)}, q.options().dtype(at::kBool)).triu(1);
    scores = scores.masked_fill(later, kNever);
  }
  if (mask && mask->scalar_type() == at::kBool) {
    scores = scores.masked_fill(mask->logical_not(), kNever);
  } else if (mask) {
    scores = scores + *mask;
  }
  return at::matmul(at::softmax(scores, -1), v);
}

std::tuple<at::Tensor, at::Tensor> attention_on_cpu(const at::Tensor& q, const at::Tensor& k,
                                                    const at::Tensor& v, double dropout,
                                                    bool causal, const Maybe& mask,
                                                    c10::optional<double> scale) {
  const at::Tensor y = attention(q, k, v, mask, dropout, causal, scale, false);
  return {y, at::empty({0}, y.options())};
}

at::Tensor squeeze_dims(const at::Tensor& x, at::IntArrayRef dims) {
  std::vector<int64_t> sizes;
  for (int64_t d = 0; d < x.dim(); ++d) {
    const bool named = std::any_of(dims.begin(), dims.end(), [&](int64_t dim) {
      return (dim < 0 ? dim + x.dim() : dim) == d;
    });
    if (!named || x.size(d) != 1) sizes.push_back(x.size(d));
  }
  return x.reshape(sizes);
}

at::Tensor rms_norm(const at::Tensor& x, at::IntArrayRef sizes, const Maybe& weight,
                    c10::optional<double> epsilon) {
  std::vector<int64_t> dims;
  for (size_t i = 0; i < sizes.size(); ++i) dims.push_back(-static_cast<int64_t>(i) - 1);
  const double smallest = x.scalar_type() == at::kDouble ? std::numeric_limits<double>::epsilon()
                                                         : std::numeric_limits<float>::epsilon();
  const at::Tensor mean = x.pow(2).mean(dims, /*keepdim=*/true);
  const at::Tensor y = x * at::rsqrt(mean + epsilon.value_or(smallest));
  return weight ? y * *weight : y;
}

std::tuple<at::Tensor, at::Tensor, at::Tensor> evaluating_batch_norm(
    const at::Tensor& x, const Maybe& weight, const Maybe& bias, const at::Tensor& mean,
    const at::Tensor& variance, double momentum, double epsilon) {
  return at::native_batch_norm(x, weight, bias, mean, variance, false, momentum, epsilon);
}

bool has_operator(const char* name, const char* overload) {
  return c10::Dispatcher::singleton().findSchema({name, overload}).has_value();
}

void add_operators() {
  static torch::Library library(torch::Library::FRAGMENT, "aten", c10::nullopt, __FILE__, __LINE__);
  const auto add = [&](const char* name, const char* overload, const char* schema, auto* function) {
    if (!has_operator(name, overload)) library.def(schema, function);
  };
  add("aten::scaled_dot_product_attention", "",
      "scaled_dot_product_attention(Tensor query, Tensor key, Tensor value, Tensor? attn_mask=None,"
      " float dropout_p=0.0, bool is_causal=False, *, float? scale=None, bool enable_gqa=False)"
      " -> Tensor",
      &attention);
  add("aten::_scaled_dot_product_flash_attention_for_cpu", "",
      "_scaled_dot_product_flash_attention_for_cpu(Tensor query, Tensor key, Tensor value,"
      " float dropout_p=0.0, bool is_causal=False, *, Tensor? attn_mask=None, float? scale=None)"
      " -> (Tensor output, Tensor logsumexp)",
      &attention_on_cpu);
  add("aten::squeeze", "dims", "squeeze.dims(Tensor self, int[] dim) -> Tensor", &squeeze_dims);
  add("aten::rms_norm", "",
      "rms_norm(Tensor input, int[] normalized_shape, Tensor? weight=None, float? eps=None)"
      " -> Tensor",
      &rms_norm);
  add("aten::_native_batch_norm_legit_no_training", "",
      "_native_batch_norm_legit_no_training(Tensor input, Tensor? weight, Tensor? bias,"
      " Tensor running_mean, Tensor running_var, float momentum, float eps)"
      " -> (Tensor, Tensor, Tensor)",
      &evaluating_batch_norm);
}

}  // namespace

void add_newer_operators() {
  static const bool added = (add_operators(), true);
  static_cast<void>(added);
}

}  // namespace parsimony::torch_io
