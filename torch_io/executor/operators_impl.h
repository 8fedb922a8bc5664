// The supported operators: their kernels, the presence of results when elements of operands are
// absent, and helpers shared by kernels.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "parsimony/torch_io/executor/call_impl.h"

namespace parsimony::executor {

/// One tensor per output; undefined or fewer if the node does not use the last ones.
using Kernel = Tensors(const Call& call);

struct Operator;
/// Returns the presence of each output, undefined if everything is present. Called if some operand
/// has absent elements.
using Presence = Tensors(const Operator& op, const Call& call, const Tensors& outputs);

struct Operator {
  std::string_view op = {};
  Kernel* kernel = nullptr;
  Presence* presence = nullptr;  ///< null: does not support absent elements
  unsigned data = 1;             ///< data operands, for `moved` and `contracted`; one bit each
  unsigned fixed = 0;            ///< operands that are settings and not trained; one bit each
  bool own_types = false;        ///< the result's type differs from the operands'
  std::string_view domain = {};
};

/// Null for an unknown operator.
const Operator* find_operator(std::string_view domain, std::string_view op);

/// Present where all operands are, broadcast.
Presence elementwise;
/// Presence of the first operand.
Presence as_first;
/// Elements of the data operands are moved; the kernel itself determines to where.
Presence moved;
/// Sums of products: present if any product is. The last operand may be a bias.
Presence contracted;
/// Like `contracted`, by rows and columns, for a matrix that is a weight or completely present.
Presence multiplied;
/// Like `contracted`; a window that covers no element has the presence of its channel.
Presence convolved;
/// Like `contracted` for the data operands only, ignoring scales, zero points and activations.
Presence contracted_plainly;
Presence convolved_plainly;
/// Concatenates the presence of the third, sixth, … operand.
Presence joined_integers;
/// Present if any of the reduced elements of the first operand is.
Presence reduced;
Presence pooled;
Presence pooled_globally;
/// Padding along an axis is present if anything along that axis is.
Presence padded;
/// Hidden units whose gates are all absent are absent.
Presence recurrent;
Presence recurrent_by_columns;
Presence arg_reduced;
/// What is chosen along an axis is present where anything along it is.
Presence chosen;
/// Sizes and the like: everything is present.
Presence everywhere;

// Helpers shared by kernels.

template <at::Tensor (*kFunction)(const at::Tensor&)>
Tensors unary(const Call& call) {
  return {kFunction(call.in(0))};
}

/// Returns the second operand; before version 7 the attribute `axis` gave its place.
at::Tensor second_operand(const Call& call);

template <at::Tensor (*kFunction)(const at::Tensor&, const at::Tensor&)>
Tensors binary(const Call& call) {
  return {kFunction(call.in(0), second_operand(call))};
}

/// Returns the mean of the present elements; `axes` keep size 1. `present` may be undefined.
at::Tensor mean_of(const at::Tensor& x, const at::Tensor& present, const Ints& axes);
Ints reduced_axes(const Call& call);
/// Returns the padding of every axis of a Pad: beginnings, then ends.
Ints pads_of(const Call& call);

/// The sliding window of convolution and pooling: one number per spatial axis of x[n c ..s].
struct Window {
  Ints kernel;
  Ints stride;
  Ints dilation;
  Ints begin;  ///< explicit padding
  Ints end;
  /// Additional padding after `end` for the last window with ceil_mode; never counted.
  Ints beyond;
};

/// Reads the attributes strides, dilations, pads, auto_pad and ceil_mode.
Window window_of(const Call& call, Ints kernel);

/// Returns x with the window's padding around it.
at::Tensor padded_for(const Window& window, const at::Tensor& x, double value);

// The kernels, by the file that has them: `Kernel add` declares a function.

// elementwise.cc
Kernel add, sub, div, mod, pow, max, min, sum, mean, bit_shift, where, is_inf, clip, cast,
    cast_like, bit_cast, label_encoder, identity, affine, image_scaler, celu, elu, gelu,
    hard_sigmoid, hard_swish, leaky_relu, mish, prelu, selu, shrink, softsign, softplus,
    thresholded_relu, softmax, log_softmax, hardmax, dropout;

// spectrum.cc
Kernel dft, stft, hann_window, hamming_window, blackman_window, mel_weight_matrix;
Presence transformed;

// attention.cc
Kernel attention, multi_head_attention, packed_attention, group_query_attention, linear_attention,
    rotary_embedding;
Presence attention_presence;
Presence linear_attention_presence;

// detection.cc
Kernel affine_grid, grid_sample, non_max_suppression, roi_align;
/// Present channels are present at every position of the result.
Presence sampled;

// fused.cc
Kernel biased_gelu, fast_gelu, quick_gelu, swish, swiglu, fused_conv, fused_gemm, gemm_fast_gelu,
    fused_matmul, rms_normalization, skip_layer_normalization, skip_rms_normalization,
    embed_layer_normalization;
Presence embedded;
Presence skipped_presence;
Kernel experts, coded_experts;
Presence expert_presence;

// convolution.cc
Kernel causal_conv_with_state, conv, conv_channels_last, conv_transpose, matmul, gemm, einsum,
    col2im, deform_conv;
Presence causal_presence;
Presence added_columns;

// pooling.cc
Kernel average_pool, adaptive_average_pool, adaptive_max_pool, max_pool, lp_pool,
    global_average_pool, global_max_pool, global_lp_pool, max_unpool, max_roi_pool;

// normalisation.cc
Kernel batch_normalization, layer_normalization, group_normalization, instance_normalization,
    mean_variance_normalization, lp_normalization, lrn;

// reduction.cc
Kernel reduce_sum, reduce_l1, reduce_sum_square, reduce_l2, reduce_log_sum, reduce_log_sum_exp,
    reduce_mean, reduce_prod, reduce_max, reduce_min, arg_max, arg_min, cum_prod, cum_sum, top_k,
    det, negative_log_likelihood_loss, softmax_cross_entropy_loss;
Presence of_matrices;

// shape.cc
/// Returns the operand's axes in the order of Transpose's result.
Ints order_of_axes(const Call& call);
Kernel reshape, flatten, squeeze, unsqueeze, transpose, concat, split, slice, pad, expand, tile,
    depth_to_space, space_to_depth, crop, shape, size, center_crop_pad, optional_has_element,
    sequence_construct, sequence_empty, sequence_at, sequence_length, sequence_insert,
    sequence_erase, split_to_sequence, concat_from_sequence;
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
    dynamic_quantize_matmul, matmul_integer_to_float, quantised_gemm, matmul_of_bits, fake_quantise,
    fake_truncate, bipolar_quantise, multi_threshold;
Presence multiplied_codes;
/// Returns each byte's codes along the last dimension, the lowest bits first.
at::Tensor codes_in(const at::Tensor& bytes, int64_t bits);

// recurrent.cc
using Activation = std::function<at::Tensor(const at::Tensor&)>;
/// Returns the activation with this ONNX name, in upper or lower case. @throws UnsupportedError
/// naming the node
Activation activation_of(const Call& call, const std::string& name, std::optional<double> alpha,
                         std::optional<double> beta);
Kernel lstm, dynamic_quantize_lstm, gru, rnn, torch_lstm, torch_gru, torch_rnn;

// User-defined kernels: for operators without one here, run by ONNX Runtime one node at a time.

/// Serves all operators without a built-in kernel; null if no library of kernels was added.
const Operator* own_operator();

/// Runs the node on all elements of its operands. @throws UnsupportedError if ONNX Runtime refuses,
/// or a gradient is requested
Tensors run_own_kernel(const Call& call);

/// Finds the presence of the results by trial: an element is absent if it depends on absent
/// elements only. A kernel that mixes channels against its rule computes with zeros for the absent
/// ones; the comparison of outputs then refutes the rule.
Tensors found_by_trial(const Call& call, const Tensors& outputs);

/// Results of the original's shape, with zeros where they are absent.
struct SmallRun {
  Tensors results;
  Tensors present;
};

/// Runs a kernel that mixes channels on operands without the absent channels. Empty if nothing is
/// absent, if not only whole channels are, or unless results follow a permutation of all operands'
/// channels, which shows how they correspond.
std::optional<SmallRun> run_without_absent(const Call& call);

}  // namespace parsimony::executor
