// The kernels, by the file that has them.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "parsimony/torch_io/executor/operators_impl.h"

namespace parsimony::executor {

template <at::Tensor (*kFunction)(const at::Tensor&)>
Tensors unary(const Call& call) {
  return {kFunction(call.in(0))};
}

// arithmetic.cc
Tensors add(const Call& call);
Tensors sub(const Call& call);
Tensors mul(const Call& call);
Tensors div(const Call& call);
Tensors mod(const Call& call);
Tensors pow(const Call& call);
Tensors max(const Call& call);
Tensors min(const Call& call);
Tensors sum(const Call& call);
Tensors mean(const Call& call);
Tensors logical_and(const Call& call);
Tensors logical_or(const Call& call);
Tensors logical_xor(const Call& call);
Tensors equal(const Call& call);
Tensors greater(const Call& call);
Tensors greater_or_equal(const Call& call);
Tensors less(const Call& call);
Tensors less_or_equal(const Call& call);
Tensors bit_shift(const Call& call);
Tensors where(const Call& call);
Tensors is_inf(const Call& call);
Tensors clip(const Call& call);
Tensors cast(const Call& call);
Tensors cast_like(const Call& call);
Tensors identity(const Call& call);
Tensors affine(const Call& call);
Tensors image_scaler(const Call& call);

// attention.cc
Tensors attention(const Call& call);
Tensors multi_head_attention(const Call& call);
Tensors packed_attention(const Call& call);
Tensors group_query_attention(const Call& call);
Tensors rotary_embedding(const Call& call);
Tensors attention_presence(const Operator& op, const Call& call, const Tensors& outputs);

// detection.cc
Tensors grid_sample(const Call& call);
Tensors non_max_suppression(const Call& call);
Tensors roi_align(const Call& call);
/// Present channels are present at every position of the result.
Tensors sampled(const Operator& op, const Call& call, const Tensors& outputs);

// fused.cc
Tensors biased_gelu(const Call& call);
Tensors fast_gelu(const Call& call);
Tensors quick_gelu(const Call& call);
Tensors swish(const Call& call);
Tensors fused_conv(const Call& call);
Tensors fused_gemm(const Call& call);
Tensors fused_matmul(const Call& call);
Tensors rms_normalization(const Call& call);
Tensors skip_layer_normalization(const Call& call);
Tensors skip_rms_normalization(const Call& call);
Tensors embed_layer_normalization(const Call& call);
Tensors embedded(const Operator& op, const Call& call, const Tensors& outputs);
Tensors skipped_presence(const Operator& op, const Call& call, const Tensors& outputs);

// activation.cc
Tensors celu(const Call& call);
Tensors elu(const Call& call);
Tensors gelu(const Call& call);
Tensors hard_sigmoid(const Call& call);
Tensors hard_swish(const Call& call);
Tensors leaky_relu(const Call& call);
Tensors mish(const Call& call);
Tensors prelu(const Call& call);
Tensors selu(const Call& call);
Tensors shrink(const Call& call);
Tensors softsign(const Call& call);
Tensors softplus(const Call& call);
Tensors thresholded_relu(const Call& call);
Tensors softmax(const Call& call);
Tensors log_softmax(const Call& call);
Tensors hardmax(const Call& call);
Tensors dropout(const Call& call);

// convolution.cc
Tensors conv(const Call& call);
Tensors conv_transpose(const Call& call);
Tensors matmul(const Call& call);
Tensors gemm(const Call& call);
Tensors einsum(const Call& call);

// pooling.cc
Tensors average_pool(const Call& call);
Tensors adaptive_average_pool(const Call& call);
Tensors adaptive_max_pool(const Call& call);
Tensors max_pool(const Call& call);
Tensors lp_pool(const Call& call);
Tensors global_average_pool(const Call& call);
Tensors global_max_pool(const Call& call);
Tensors global_lp_pool(const Call& call);

// normalisation.cc
Tensors batch_normalization(const Call& call);
Tensors layer_normalization(const Call& call);
Tensors group_normalization(const Call& call);
Tensors instance_normalization(const Call& call);
Tensors mean_variance_normalization(const Call& call);
Tensors lp_normalization(const Call& call);
Tensors lrn(const Call& call);

// reduction.cc
Tensors reduce_sum(const Call& call);
Tensors reduce_l1(const Call& call);
Tensors reduce_sum_square(const Call& call);
Tensors reduce_l2(const Call& call);
Tensors reduce_log_sum(const Call& call);
Tensors reduce_log_sum_exp(const Call& call);
Tensors reduce_mean(const Call& call);
Tensors reduce_prod(const Call& call);
Tensors reduce_max(const Call& call);
Tensors reduce_min(const Call& call);
Tensors arg_max(const Call& call);
Tensors arg_min(const Call& call);
Tensors cum_sum(const Call& call);
Tensors top_k(const Call& call);

// shape.cc
Tensors reshape(const Call& call);
Tensors flatten(const Call& call);
Tensors squeeze(const Call& call);
Tensors unsqueeze(const Call& call);
Tensors transpose(const Call& call);
Tensors concat(const Call& call);
Tensors split(const Call& call);
Tensors slice(const Call& call);
Tensors pad(const Call& call);
Tensors expand(const Call& call);
Tensors tile(const Call& call);
Tensors depth_to_space(const Call& call);
Tensors space_to_depth(const Call& call);
Tensors crop(const Call& call);
Tensors shape(const Call& call);
Tensors size(const Call& call);

// indexing.cc
Tensors gather(const Call& call);
Tensors gather_elements(const Call& call);
Tensors gather_nd(const Call& call);
Tensors scatter_elements(const Call& call);
Tensors scatter_nd(const Call& call);
Tensors non_zero(const Call& call);
Tensors one_hot(const Call& call);
Tensors trilu(const Call& call);
Tensors constant_of_shape(const Call& call);
Tensors range(const Call& call);
Tensors eye_like(const Call& call);
Tensors compress(const Call& call);
Tensors reverse_sequence(const Call& call);

// resize.cc
Tensors resize(const Call& call);

// quantise.cc
Tensors quantize_linear(const Call& call);
Tensors dequantize_linear(const Call& call);
Tensors dynamic_quantize_linear(const Call& call);
Tensors matmul_integer(const Call& call);
Tensors conv_integer(const Call& call);
Tensors qlinear_matmul(const Call& call);
Tensors qlinear_conv(const Call& call);
Tensors qlinear_add(const Call& call);
Tensors qlinear_mul(const Call& call);
Tensors qlinear_average_pool(const Call& call);
Tensors qlinear_global_average_pool(const Call& call);
Tensors qlinear_leaky_relu(const Call& call);
Tensors qlinear_sigmoid(const Call& call);
Tensors qlinear_concat(const Call& call);
Tensors dynamic_quantize_matmul(const Call& call);
Tensors matmul_integer_to_float(const Call& call);
Tensors quantised_gemm(const Call& call);

// recurrent.cc
using Activation = std::function<at::Tensor(const at::Tensor&)>;
/// The activation with this ONNX name, in upper or lower case. @throws UnsupportedError naming the
/// node
Activation activation_of(const Call& call, const std::string& name, std::optional<double> alpha,
                         std::optional<double> beta);
Tensors lstm(const Call& call);
Tensors gru(const Call& call);
Tensors rnn(const Call& call);
Tensors torch_lstm(const Call& call);
Tensors torch_gru(const Call& call);
Tensors torch_rnn(const Call& call);

// Shared with the presence rules.
Ints reduced_axes(const Call& call);
/// The padding of every axis of a Pad: beginnings, then ends.
Ints pads_of(const Call& call);

}  // namespace parsimony::executor
