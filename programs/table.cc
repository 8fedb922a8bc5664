// All lowered aten operators, by the function that lowers them; in-place forms are found by the
// name without "_".
#include <string_view>
#include <unordered_map>
#include <vector>

#include "parsimony/programs/call.h"

namespace parsimony::programs {
namespace {

/// An operator, with its ONNX name if the function lowers several.
struct Name {
  // NOLINTNEXTLINE(google-explicit-constructor): any name is one
  Name(const char* own, const char* other = "") : aten(own), onnx(other) {}

  std::string_view aten;
  std::string_view onnx;
};

struct Family {
  Lowering* lower;
  std::vector<Name> names;
};

std::unordered_map<std::string_view, Rule> by_name(const std::vector<Family>& families) {
  std::unordered_map<std::string_view, Rule> all;
  for (const Family& family : families) {
    for (const Name& name : family.names) all[name.aten] = {name.aten, family.lower, name.onnx};
  }
  return all;
}

std::unordered_map<std::string_view, Rule> rules() {
  const std::vector<Family> families = {
      // lower_convolution.cc
      {lower_conv, {"conv1d", "conv2d", "conv3d"}},
      {lower_convolution, {"_convolution", "convolution"}},
      {lower_conv_transpose, {"conv_transpose1d", "conv_transpose2d", "conv_transpose3d"}},
      {lower_max_pool,
       {"max_pool1d", "max_pool1d_with_indices", "max_pool2d", "max_pool2d_with_indices",
        "max_pool3d", "max_pool3d_with_indices"}},
      {lower_avg_pool, {"avg_pool1d", "avg_pool2d", "avg_pool3d"}},
      {lower_adaptive_pool,
       {{"_adaptive_avg_pool2d", "AveragePool"},
        {"_adaptive_avg_pool3d", "AveragePool"},
        {"adaptive_avg_pool1d", "AveragePool"},
        {"adaptive_avg_pool2d", "AveragePool"},
        {"adaptive_avg_pool3d", "AveragePool"},
        {"adaptive_max_pool1d", "MaxPool"},
        {"adaptive_max_pool2d", "MaxPool"},
        {"adaptive_max_pool3d", "MaxPool"}}},
      {lower_upsample,
       {"_upsample_bicubic2d_aa", "_upsample_bilinear2d_aa", "_upsample_nearest_exact1d",
        "_upsample_nearest_exact2d", "_upsample_nearest_exact3d", "upsample_bicubic2d",
        "upsample_bilinear2d", "upsample_linear1d", "upsample_nearest1d", "upsample_nearest2d",
        "upsample_nearest3d", "upsample_trilinear3d"}},
      {lower_pixel_shuffle, {"pixel_shuffle"}},
      // lower_linear.cc
      {lower_linear, {"linear"}},
      {lower_addmm, {"addmm"}},
      {lower_addmv, {"addmv"}},
      {lower_matmul, {"bmm", "matmul", "mm", "mv"}},
      {lower_baddbmm, {"baddbmm"}},
      {lower_einsum, {"einsum"}},
      {lower_embedding, {"embedding"}},
      // lower_normalisation.cc
      {lower_batch_norm, {"batch_norm", "_native_batch_norm_legit", "native_batch_norm"}},
      {lower_batch_norm_of_statistics, {"_native_batch_norm_legit_no_training"}},
      {lower_layer_norm, {"layer_norm", "native_layer_norm"}},
      {lower_rms_norm, {"rms_norm"}},
      {lower_group_norm, {"group_norm"}},
      {lower_native_group_norm, {"native_group_norm"}},
      {lower_instance_norm, {"instance_norm"}},
      {lower_weight_norm, {"_weight_norm"}},
      // lower_elementwise.cc
      {lower_clamp, {"clamp", "clamp_max", "clamp_min", "clip"}},
      {lower_hardtanh, {"hardtanh"}},
      {lower_relu6, {"relu6"}},
      {lower_leaky_relu, {"leaky_relu"}},
      {lower_rrelu, {"rrelu"}},
      {lower_elu, {{"celu", "Celu"}, {"elu", "Elu"}}},
      {lower_gelu, {"gelu"}},
      {lower_silu, {"silu"}},
      {lower_hard_sigmoid, {"hardsigmoid"}},
      {lower_softplus, {"softplus"}},
      {lower_log_sigmoid, {"log_sigmoid"}},
      {lower_prelu, {"prelu"}},
      {lower_glu, {"glu"}},
      {lower_shrink, {"hardshrink", "softshrink"}},
      {lower_threshold, {"threshold"}},
      {lower_softmax,
       {{"_log_softmax", "LogSoftmax"},
        {"_softmax", "Softmax"},
        {"log_softmax", "LogSoftmax"},
        {"softmax", "Softmax"}}},
      {lower_unary,
       {{"abs", "Abs"},
        {"bitwise_not", "Not"},
        {"ceil", "Ceil"},
        {"floor", "Floor"},
        {"hardswish", "HardSwish"},
        {"isinf", "IsInf"},
        {"isnan", "IsNaN"},
        {"logical_not", "Not"},
        {"mish", "Mish"},
        {"neg", "Neg"},
        {"relu", "Relu"},
        {"round", "Round"},
        {"selu", "Selu"},
        {"sign", "Sign"}}},
      {lower_real,
       {{"acos", "Acos"},
        {"acosh", "Acosh"},
        {"asin", "Asin"},
        {"asinh", "Asinh"},
        {"atan", "Atan"},
        {"atanh", "Atanh"},
        {"cos", "Cos"},
        {"cosh", "Cosh"},
        {"erf", "Erf"},
        {"exp", "Exp"},
        {"log", "Log"},
        {"reciprocal", "Reciprocal"},
        {"sigmoid", "Sigmoid"},
        {"sin", "Sin"},
        {"sinh", "Sinh"},
        {"sqrt", "Sqrt"},
        {"tan", "Tan"},
        {"tanh", "Tanh"}}},
      {lower_binary, {{"__and__", "And"},     {"__or__", "Or"},       {"__xor__", "Xor"},
                      {"bitwise_and", "And"}, {"bitwise_or", "Or"},   {"bitwise_xor", "Xor"},
                      {"eq", "Equal"},        {"fmod", "Mod"},        {"ge", "GreaterOrEqual"},
                      {"gt", "Greater"},      {"le", "LessOrEqual"},  {"logical_and", "And"},
                      {"logical_or", "Or"},   {"logical_xor", "Xor"}, {"lt", "Less"},
                      {"maximum", "Max"},     {"minimum", "Min"},     {"mul", "Mul"},
                      {"multiply", "Mul"},    {"pow", "Pow"},         {"remainder", "Mod"}}},
      {lower_add, {{"add", "Add"}, {"sub", "Sub"}}},
      {lower_rsub, {"rsub"}},
      {lower_div, {"div", "true_divide"}},
      {lower_floor_divide, {"floor_divide"}},
      {lower_rsqrt, {"rsqrt"}},
      {lower_square, {"square"}},
      {lower_ne, {"ne"}},
      {lower_log_of_base, {"log10", "log2"}},
      {lower_log1p, {"log1p"}},
      {lower_expm1, {"expm1"}},
      {lower_erfc, {"erfc"}},
      {lower_trunc, {"fix", "frac", "trunc"}},
      {lower_lerp, {"lerp"}},
      {lower_where, {"where"}},
      {lower_masked_fill, {"masked_fill"}},
      {lower_addcmul, {{"addcdiv", "Div"}, {"addcmul", "Mul"}}},
      {lower_nan_to_num, {"nan_to_num"}},
      {lower_logit, {"logit", "special_logit"}},
      {lower_hypot, {"hypot"}},
      {lower_atan2, {"arctan2", "atan2"}},
      {lower_xlogy, {"special_xlogy", "xlogy"}},
      {lower_trilu, {"tril", "triu"}},
      {lower_cumsum, {"cumsum"}},
      {lower_histc, {"histc"}},
      // lower_cast.cc
      {lower_same,
       {"alias", "alpha_dropout", "cpu", "detach", "dropout", "feature_alpha_dropout",
        "feature_dropout", "lift_fresh", "positive", "requires_grad"}},
      {lower_copy, {"clone", "lift_fresh_copy"}},
      {lower_copy_into, {"copy"}},
      {lower_maybe_copy, {"contiguous"}},
      {lower_cast, {"_cast_Double", "_cast_Float", "_cast_Half", "_cast_Int", "_cast_Long"}},
      {lower_to, {"_to_copy", "to"}},
      {lower_type_as, {"type_as"}},
      {lower_fill, {"fill", "zero"}},
      {lower_full,
       {"empty", "empty_permuted", "full", "new_empty", "new_full", "new_ones", "new_zeros", "ones",
        "zeros"}},
      {lower_eye, {"eye"}},
      {lower_full_like, {"empty_like", "full_like", "ones_like", "zeros_like"}},
      {lower_draw,
       {{"rand", "RandomUniformLike"},
        {"rand_like", "RandomUniformLike"},
        {"randn", "RandomNormalLike"},
        {"randn_like", "RandomNormalLike"}}},
      {lower_scalar_tensor, {"scalar_tensor", "tensor"}},
      {lower_arange, {"arange"}},
      {lower_linspace, {"linspace"}},
      // lower_shape.cc
      {lower_view, {"reshape", "view"}},
      {lower_as_strided, {"as_strided"}},
      {lower_flatten, {"flatten", "ravel"}},
      {lower_unflatten, {"unflatten"}},
      {lower_permute, {"permute"}},
      {lower_transpose, {"swapaxes", "swapdims", "transpose"}},
      {lower_movedim, {"moveaxis", "movedim"}},
      {lower_t, {"mT", "numpy_T", "t"}},
      {lower_squeeze, {"squeeze"}},
      {lower_unsqueeze, {"unsqueeze"}},
      {lower_expand, {"broadcast_to", "expand"}},
      {lower_as, {{"expand_as", "Expand"}, {"reshape_as", "Reshape"}, {"view_as", "Reshape"}}},
      {lower_repeat, {"repeat", "tile"}},
      {lower_repeat_interleave, {"repeat_interleave"}},
      {lower_channel_shuffle, {"channel_shuffle", "native_channel_shuffle"}},
      // lower_indexing.cc
      {lower_cat, {"cat", "concat"}},
      {lower_stack, {"stack"}},
      {lower_stack_along, {"dstack", "hstack", "vstack"}},
      {lower_meshgrid, {"meshgrid"}},
      {lower_chunk, {"chunk", "unsafe_chunk"}},
      {lower_split, {"split", "split_with_sizes", "unsafe_split", "unsafe_split_with_sizes"}},
      {lower_tensor_split, {"tensor_split"}},
      {lower_unbind, {"unbind"}},
      {lower_slice, {"slice"}},
      {lower_part, {"select_scatter", "slice_scatter"}},
      {lower_flip, {"flip"}},
      {lower_narrow, {"narrow"}},
      {lower_roll, {"roll"}},
      {lower_diff, {"diff"}},
      {lower_select, {"select"}},
      {lower_pad,
       {"constant_pad_nd", "pad", "reflection_pad1d", "reflection_pad2d", "reflection_pad3d",
        "replication_pad1d", "replication_pad2d", "replication_pad3d"}},
      // lower_complex.cc
      {lower_view_as_complex, {"view_as_complex"}},
      {lower_complex, {"complex"}},
      {lower_polar, {"polar"}},
      {lower_same, {"conj", "real", "resolve_conj"}},
      {lower_fft,
       {"fft_fft", "fft_fft2", "fft_fftn", "fft_ifft", "fft_ifft2", "fft_ifftn", "fft_rfft",
        "fft_rfft2", "fft_rfftn"}},
      {lower_inner_fft, {"_fft_r2c"}},
      // lower_indexing.cc
      {lower_gather, {{"gather", "GatherElements"}, {"index_select", "Gather"}}},
      {lower_index, {"_unsafe_index", "index"}},
      {lower_one_hot, {"one_hot"}},
      {lower_places, {"nonzero"}},
      {lower_scatter, {"scatter", "scatter_add"}},
      {lower_scatter_reduce, {"scatter_reduce"}},
      {lower_index_add, {"index_add", "index_copy"}},
      {lower_index_fill, {"index_fill"}},
      {lower_index_put, {"index_put"}},
      {lower_grouped_mm, {"_grouped_mm", "grouped_mm_fallback"}},
      {lower_embedding_bag, {"_embedding_bag", "_embedding_bag_forward_only", "embedding_bag"}},
      // lower_convolution.cc
      {lower_unfold, {"unfold"}},
      {lower_im2col, {"im2col"}},
      {lower_col2im, {"col2im"}},
      {lower_pixel_unshuffle, {"pixel_unshuffle"}},
      {lower_grid_sampler, {"grid_sampler", "grid_sampler_2d"}},
      {lower_topk, {"topk"}},
      {lower_sort, {"argsort", "sort"}},
      // lower_normalisation.cc
      {lower_reduce,
       {{"amax", "ReduceMax"},
        {"amin", "ReduceMin"},
        {"logsumexp", "ReduceLogSumExp"},
        {"mean", "ReduceMean"},
        {"prod", "ReduceProd"},
        {"sum", "ReduceSum"}}},
      {lower_max_min, {{"max", "Max"}, {"min", "Min"}}},
      {lower_any, {{"all", "ReduceMin"}, {"any", "ReduceMax"}}},
      {lower_arg, {{"argmax", "ArgMax"}, {"argmin", "ArgMin"}}},
      {lower_norm, {"linalg_vector_norm", "norm"}},
      {lower_frobenius_norm, {"frobenius_norm"}},
      {lower_linalg_norm, {"linalg_norm"}},
      {lower_var, {"std", "std_mean", "var", "var_mean"}},
      // lower_recurrent.cc
      {lower_recurrent,
       {{"gru", "Gru"}, {"lstm", "Lstm"}, {"rnn_relu", "Rnn"}, {"rnn_tanh", "Rnn"}}},
      {lower_cell,
       {{"gru_cell", "Gru"},
        {"lstm_cell", "Lstm"},
        {"rnn_relu_cell", "Rnn"},
        {"rnn_tanh_cell", "Rnn"}}},
      // lower_linear.cc
      {lower_attention, {"scaled_dot_product_attention"}},
      {lower_flash_attention, {"_scaled_dot_product_flash_attention_for_cpu"}},
      {lower_native_attention, {"_native_multi_head_attention"}},
      {lower_encoder_layer, {"_transformer_encoder_layer_fwd"}},
  };
  return by_name(families);
}

}  // namespace

const Rule* find_rule(std::string_view op) {
  static const std::unordered_map<std::string_view, Rule> known = rules();
  const auto found = known.find(op);
  return found == known.end() ? nullptr : &found->second;
}

namespace {

/// Operators that only move elements are lowered as for real tensors.
std::unordered_map<std::string_view, Rule> complex_rules() {
  const std::vector<Family> movers = {
      {lower_same, {"alias", "detach", "dropout", "lift_fresh", "resolve_conj"}},
      {lower_copy, {"clone"}},
      {lower_copy_into, {"copy"}},
      {lower_maybe_copy, {"contiguous"}},
      {lower_complex_to, {"_to_copy", "to"}},
      {lower_full_like, {"zeros_like"}},
      {lower_unary, {{"neg", "Neg"}}},
      {lower_view, {"reshape", "view"}},
      {lower_flatten, {"flatten"}},
      {lower_permute, {"permute"}},
      {lower_transpose, {"swapaxes", "swapdims", "transpose"}},
      {lower_movedim, {"moveaxis", "movedim"}},
      {lower_squeeze, {"squeeze"}},
      {lower_unsqueeze, {"unsqueeze"}},
      {lower_expand, {"broadcast_to", "expand"}},
      {lower_cat, {"cat", "concat"}},
      {lower_stack, {"stack"}},
      {lower_chunk, {"chunk"}},
      {lower_split, {"split", "split_with_sizes"}},
      {lower_unbind, {"unbind"}},
      {lower_slice, {"slice"}},
      {lower_narrow, {"narrow"}},
      {lower_flip, {"flip"}},
      {lower_roll, {"roll"}},
      {lower_select, {"select"}},
      {lower_pad, {"constant_pad_nd", "pad"}},
  };
  const std::vector<Family> others = {
      {lower_complex_mul, {"mul", "multiply"}},
      {lower_complex_div, {"div", "true_divide"}},
      {lower_complex_add, {{"add", "Add"}, {"sub", "Sub"}}},
      {lower_complex_matmul, {"bmm", "matmul", "mm"}},
      {lower_complex_einsum, {"einsum"}},
      {lower_conj, {"conj"}},
      {lower_complex_abs, {"abs"}},
      {lower_part_of_complex, {"imag", "real"}},
      {lower_view_as_real, {"view_as_real"}},
      {lower_fft,
       {"fft_fft", "fft_fft2", "fft_fftn", "fft_ifft", "fft_ifft2", "fft_ifftn", "fft_irfft",
        "fft_irfft2", "fft_irfftn"}},
      {lower_inner_fft, {"_fft_c2c", "_fft_c2r"}},
  };
  auto all = by_name(others);
  for (auto& [name, rule] : by_name(movers)) {
    rule.moves = true;
    all.emplace(name, rule);
  }
  return all;
}

}  // namespace

const Rule* find_complex_rule(std::string_view op) {
  static const std::unordered_map<std::string_view, Rule> known = complex_rules();
  const auto found = known.find(op);
  return found == known.end() ? nullptr : &found->second;
}

}  // namespace parsimony::programs
