// The functions that lower aten operators, by subject. The table is in table.cc.
#pragma once

#include "parsimony/torch_io/script/call_impl.h"

namespace parsimony::torch_io::script {

// lower_convolution.cc
void lower_conv(Call& call);
void lower_convolution(Call& call);
void lower_conv_transpose(Call& call);
void lower_max_pool(Call& call);
void lower_avg_pool(Call& call);
void lower_adaptive_avg_pool(Call& call);
void lower_adaptive_max_pool(Call& call);
void lower_upsample(Call& call);
void lower_pixel_shuffle(Call& call);

// lower_linear.cc
void lower_linear(Call& call);
void lower_addmm(Call& call);
void lower_matmul(Call& call);
void lower_baddbmm(Call& call);
void lower_einsum(Call& call);
void lower_embedding(Call& call);

// lower_normalisation.cc
void lower_batch_norm(Call& call);
void lower_layer_norm(Call& call);
void lower_group_norm(Call& call);
void lower_instance_norm(Call& call);
void lower_weight_norm(Call& call);

// lower_activation.cc
void lower_clamp(Call& call);
void lower_hardtanh(Call& call);
void lower_relu6(Call& call);
void lower_leaky_relu(Call& call);
void lower_elu(Call& call);
void lower_celu(Call& call);
void lower_gelu(Call& call);
void lower_silu(Call& call);
void lower_hard_sigmoid(Call& call);
void lower_softplus(Call& call);
void lower_log_sigmoid(Call& call);
void lower_prelu(Call& call);
void lower_glu(Call& call);
void lower_shrink(Call& call);
void lower_threshold(Call& call);
void lower_softmax(Call& call);
void lower_log_softmax(Call& call);

// lower_elementwise.cc
void lower_unary(Call& call);
void lower_binary(Call& call);
void lower_add(Call& call);
void lower_sub(Call& call);
void lower_rsub(Call& call);
void lower_div(Call& call);
void lower_floor_divide(Call& call);
void lower_rsqrt(Call& call);
void lower_square(Call& call);
void lower_ne(Call& call);
void lower_log_of_base(Call& call);
void lower_log1p(Call& call);
void lower_expm1(Call& call);
void lower_erfc(Call& call);
void lower_trunc(Call& call);
void lower_lerp(Call& call);
void lower_where(Call& call);
void lower_masked_fill(Call& call);
void lower_addcmul(Call& call);
void lower_trilu(Call& call);
void lower_cumsum(Call& call);

// lower_cast.cc
void lower_same(Call& call);
void lower_copy(Call& call);
void lower_copy_into(Call& call);
void lower_maybe_copy(Call& call);
void lower_cast(Call& call);
void lower_to(Call& call);
void lower_type_as(Call& call);
void lower_fill(Call& call);
void lower_full(Call& call);
void lower_full_like(Call& call);
void lower_arange(Call& call);
void lower_linspace(Call& call);

// lower_shape.cc
void lower_view(Call& call);
void lower_flatten(Call& call);
void lower_unflatten(Call& call);
void lower_permute(Call& call);
void lower_transpose(Call& call);
void lower_movedim(Call& call);
void lower_t(Call& call);
void lower_squeeze(Call& call);
void lower_unsqueeze(Call& call);
void lower_expand(Call& call);
void lower_expand_as(Call& call);
void lower_view_as(Call& call);
void lower_repeat(Call& call);
void lower_repeat_interleave(Call& call);
void lower_channel_shuffle(Call& call);

// lower_slice.cc
void lower_cat(Call& call);
void lower_stack(Call& call);
void lower_stack_along(Call& call);
void lower_meshgrid(Call& call);
void lower_chunk(Call& call);
void lower_split(Call& call);
void lower_tensor_split(Call& call);
void lower_unbind(Call& call);
void lower_slice(Call& call);
void lower_flip(Call& call);
void lower_narrow(Call& call);
void lower_roll(Call& call);
void lower_select(Call& call);
void lower_pad(Call& call);

// lower_indexing.cc
void lower_index_select(Call& call);
void lower_index(Call& call);
void lower_gather(Call& call);
void lower_scatter(Call& call);
void lower_index_add(Call& call);

// lower_windows.cc
void lower_unfold(Call& call);
void lower_im2col(Call& call);
void lower_pixel_unshuffle(Call& call);
void lower_grid_sampler(Call& call);
void lower_topk(Call& call);
void lower_sort(Call& call);

// lower_reduction.cc
void lower_reduce(Call& call);
void lower_max_min(Call& call);
void lower_arg(Call& call);
void lower_norm(Call& call);
void lower_frobenius_norm(Call& call);
void lower_linalg_norm(Call& call);
void lower_var(Call& call);

// lower_recurrent.cc
void lower_lstm(Call& call);
void lower_gru(Call& call);
void lower_rnn(Call& call);
void lower_cell(Call& call);

// lower_attention.cc
void lower_attention(Call& call);
void lower_native_attention(Call& call);

/// In place of an omitted operand, its neutral number, `size` times.
Operand or_synthetic(Call& call, size_t i, int64_t size, double number);
/// Swaps the last two dimensions.
ValueId transposed(Call& call, ValueId value);
/// The matrix of the model of which the value is the transpose, else kNone.
ValueId matrix_behind(Call& call, ValueId value);

}  // namespace parsimony::torch_io::script
