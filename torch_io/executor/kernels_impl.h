// The kernels, by the file that has them: `Kernel add` declares a function.
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

/// Before version 7 the second operand's place was given by the attribute `axis`.
at::Tensor second_operand(const Call& call);

template <at::Tensor (*kFunction)(const at::Tensor&, const at::Tensor&)>
Tensors binary(const Call& call) {
  return {kFunction(call.in(0), second_operand(call))};
}

// arithmetic.cc
Kernel add, sub, div, mod, pow, max, min, sum, mean, bit_shift, where, is_inf, clip, cast,
    cast_like, identity, affine, image_scaler;

// columns.cc
Kernel col2im, deform_conv, affine_grid;
Presence added_columns;

// sequence.cc
Kernel sequence_construct, sequence_empty, sequence_at, sequence_length, sequence_insert,
    sequence_erase, split_to_sequence, concat_from_sequence;

// spectrum.cc
Kernel dft, stft, hann_window, hamming_window, blackman_window, mel_weight_matrix;
Presence transformed;

// attention.cc
Kernel attention, multi_head_attention, packed_attention, group_query_attention, rotary_embedding;
Presence attention_presence;

// detection.cc
Kernel grid_sample, non_max_suppression, roi_align;
/// Present channels are present at every position of the result.
Presence sampled;

// fused.cc
Kernel biased_gelu, fast_gelu, quick_gelu, swish, fused_conv, fused_gemm, fused_matmul,
    rms_normalization, skip_layer_normalization, skip_rms_normalization, embed_layer_normalization;
Presence embedded;
Presence skipped_presence;

// activation.cc
Kernel celu, elu, gelu, hard_sigmoid, hard_swish, leaky_relu, mish, prelu, selu, shrink, softsign,
    softplus, thresholded_relu, softmax, log_softmax, hardmax, dropout;

// convolution.cc
Kernel conv, conv_transpose, matmul, gemm, einsum;

// pooling.cc
Kernel average_pool, adaptive_average_pool, adaptive_max_pool, max_pool, lp_pool,
    global_average_pool, global_max_pool, global_lp_pool, max_unpool, max_roi_pool;

// normalisation.cc
Kernel batch_normalization, layer_normalization, group_normalization, instance_normalization,
    mean_variance_normalization, lp_normalization, lrn;

// reduction.cc
Kernel reduce_sum, reduce_l1, reduce_sum_square, reduce_l2, reduce_log_sum, reduce_log_sum_exp,
    reduce_mean, reduce_prod, reduce_max, reduce_min, arg_max, arg_min, cum_sum, top_k, det,
    negative_log_likelihood_loss, softmax_cross_entropy_loss;
Presence of_matrices;

// shape.cc
Kernel reshape, flatten, squeeze, unsqueeze, transpose, concat, split, slice, pad, expand, tile,
    depth_to_space, space_to_depth, crop, shape, size, center_crop_pad, optional_has_element;
Presence cropped_presence;

// indexing.cc
Kernel gather, gather_elements, gather_nd, scatter_elements, scatter_nd, non_zero, one_hot, trilu,
    constant_of_shape, range, eye_like, compress, reverse_sequence, tensor_scatter, unique;

// resize.cc
Kernel resize;

// quantise.cc
Kernel quantize_linear, dequantize_linear, dynamic_quantize_linear, matmul_integer, conv_integer,
    qlinear_matmul, qlinear_conv, qlinear_add, qlinear_mul, qlinear_average_pool,
    qlinear_global_average_pool, qlinear_leaky_relu, qlinear_sigmoid, qlinear_concat,
    dynamic_quantize_matmul, matmul_integer_to_float, quantised_gemm;

// experts.cc
Kernel experts, coded_experts;
Presence expert_presence;

// codes.cc
Kernel matmul_of_bits, fake_quantise, fake_truncate, bipolar_quantise;
Presence multiplied_codes;
/// Each byte's codes side by side along the last dimension, the first in the lowest bits.
at::Tensor codes_in(const at::Tensor& bytes, int64_t bits);

// recurrent.cc
using Activation = std::function<at::Tensor(const at::Tensor&)>;
/// The activation with this ONNX name, in upper or lower case. @throws UnsupportedError naming the
/// node
Activation activation_of(const Call& call, const std::string& name, std::optional<double> alpha,
                         std::optional<double> beta);
Kernel lstm, gru, rnn, torch_lstm, torch_gru, torch_rnn;

// Shared among kernels and with the presence rules.
/// Of the present elements; `axes` stay with size 1. `present` may be undefined.
at::Tensor mean_of(const at::Tensor& x, const at::Tensor& present, const Ints& axes);
Ints reduced_axes(const Call& call);
/// The padding of every axis of a Pad: beginnings, then ends.
Ints pads_of(const Call& call);

}  // namespace parsimony::executor
