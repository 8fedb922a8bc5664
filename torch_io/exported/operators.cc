#include <ATen/ATen.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <torch/library.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "parsimony/torch_io/exported/operators_impl.h"

namespace parsimony::torch_io::exported {
namespace {

using Maybe = c10::optional<at::Tensor>;

/// @source torch.nn.functional.scaled_dot_product_attention, its documentation
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

/// What newer versions have and this one may lack.
void add_missing_operators() {
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

/// Functions of Python on numbers.
const std::unordered_map<std::string_view, std::string_view>& number_functions() {
  static const std::unordered_map<std::string_view, std::string_view> functions = {
      {"add", "aten::add"},         {"sub", "aten::sub"},
      {"mul", "aten::mul"},         {"floordiv", "aten::floordiv"},
      {"mod", "aten::remainder"},   {"truediv", "aten::div"},
      {"pow", "aten::pow"},         {"neg", "aten::neg"},
      {"eq", "aten::eq"},           {"ne", "aten::ne"},
      {"lt", "aten::lt"},           {"le", "aten::le"},
      {"gt", "aten::gt"},           {"ge", "aten::ge"},
      {"and_", "aten::__and__"},    {"or_", "aten::__or__"},
      {"sym_max", "prim::max"},     {"sym_min", "prim::min"},
      {"sym_not", "aten::__not__"}, {"sym_int", "aten::Int"},
      {"sym_float", "aten::Float"}, {"ceil", "aten::ceil"},
      {"floor", "aten::floor"},     {"_sym_sqrt", "aten::sqrt"},
      {"trunc", "aten::Int"},
  };
  return functions;
}

/// Aliases that the program means: views of what a newer version lays out in memory in its own way
/// are copies where they must be, and sizes are numbers.
std::string own_kind(const std::string& kind) {
  if (kind == "aten::view" || kind == "aten::_unsafe_view") return "aten::reshape";
  if (kind == "aten::sym_size") return "aten::size";
  if (kind == "aten::sym_numel") return "aten::numel";
  return kind;
}

constexpr auto kPassing = std::to_array<std::string_view>(
    {"aten::_assert_async", "aten::_assert_scalar", "aten::_assert_tensor_metadata",
     "aten::sym_constrain_range", "aten::sym_constrain_range_for_size"});
constexpr auto kInlining = std::to_array<std::string_view>(
    {"higher_order::wrap_with_autocast", "higher_order::wrap_with_set_grad_enabled"});

const c10::FunctionSchema* schema_of(const std::string& kind, const std::string& overload) {
  const auto handle = c10::Dispatcher::singleton().findSchema({kind, overload});
  return handle ? &handle->schema() : nullptr;
}

}  // namespace

Target target_of(const std::string& text) {
  static const bool added = (add_missing_operators(), true);
  static_cast<void>(added);
  constexpr std::string_view kOps = "torch.ops.";
  Target target;
  if (text.starts_with(kOps)) {
    const size_t name = text.find('.', kOps.size());
    const size_t end = text.find('.', name == text.npos ? text.size() : name + 1);
    const std::string space = text.substr(kOps.size(), name - kOps.size());
    const std::string op = name == text.npos ? "" : text.substr(name + 1, end - name - 1);
    const std::string overload = end == text.npos ? "" : text.substr(end + 1);
    target.kind = space + "::" + op;
    target.schema = schema_of(target.kind, overload == "default" ? "" : overload);
    target.branches = target.kind == "higher_order::cond";
    target.inlines = std::ranges::find(kInlining, target.kind) != kInlining.end();
    target.passes = std::ranges::find(kPassing, target.kind) != kPassing.end();
    target.kind = own_kind(target.kind);
  } else {
    const std::string name = text.substr(text.rfind('.') + 1);
    const auto number = number_functions().find(name);
    target.kind = number == number_functions().end() ? "python::" + name : number->second;
  }
  return target;
}

}  // namespace parsimony::torch_io::exported
