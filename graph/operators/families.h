// Operators that one line of notation cannot describe completely: one file per family. Private to
// the rule table.
#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "parsimony/graph/operators/factor.h"
#include "parsimony/graph/operators/node_view.h"
#include "parsimony/graph/operators/schema.h"

namespace parsimony::operators {

// spatial.cc: sliding windows, whose factors are those of the notation, sampling, grids
Shapes infer_conv(const NodeView& view);
Shapes infer_conv_channels_last(const NodeView& view);
Shapes infer_causal_conv(const NodeView& view);
Shapes infer_conv_transpose(const NodeView& view);
Shapes infer_pool(const NodeView& view);
Shapes infer_global_pool(const NodeView& view);
Shapes infer_crop(const NodeView& view);
Shapes infer_max_unpool(const NodeView& view);
Shapes infer_max_roi_pool(const NodeView& view);
Shapes infer_col_to_im(const NodeView& view);
Factors factor_col_to_im(const NodeView& view);
Shapes infer_affine_grid(const NodeView& view);
Shapes infer_image_decoder(const NodeView& view);
Shapes infer_resize(const NodeView& view);
Factors factor_resize(const NodeView& view);
void patch_resize(PatchView& view);

// reshape.cc: the same elements with other dimensions, or in another order
Shapes infer_reshape(const NodeView& view);
Shapes infer_flatten(const NodeView& view);
Shapes infer_squeeze(const NodeView& view);
Shapes infer_unsqueeze(const NodeView& view);
Factors factor_reshape(const NodeView& view);
void patch_reshape(PatchView& view);
void patch_squeeze(PatchView& view);
Shapes infer_transpose(const NodeView& view);
Factors factor_transpose(const NodeView& view);

// concat_split.cc: dimensions made of segments, and lists of tensors
Shapes infer_concat(const NodeView& view);
Factors factor_concat(const NodeView& view);
Shapes infer_split(const NodeView& view);
Factors factor_split(const NodeView& view);
void patch_split(PatchView& view);
Shapes infer_sequence_construct(const NodeView& view);
Shapes infer_sequence_empty(const NodeView& view);
Shapes infer_sequence_erase(const NodeView& view);
Shapes infer_sequence_insert(const NodeView& view);
Shapes infer_sequence_length(const NodeView& view);
Factors factor_sequence(const NodeView& view);
Shapes infer_split_to_sequence(const NodeView& view);
Factors factor_split_to_sequence(const NodeView& view);
Shapes infer_concat_from_sequence(const NodeView& view);
Factors factor_concat_from_sequence(const NodeView& view);

// slice_pad.cc: dimensions made of segments
Shapes infer_slice(const NodeView& view);
Factors factor_slice(const NodeView& view);
void patch_slice(PatchView& view);
Shapes infer_center_crop_pad(const NodeView& view);
Factors factor_center_crop_pad(const NodeView& view);
Shapes infer_pad(const NodeView& view);
Factors factor_pad(const NodeView& view);
void patch_pad(PatchView& view);

// gather_scatter.cc: what is read, written or ordered by position
Shapes infer_gather(const NodeView& view);
Factors factor_gather(const NodeView& view);
void patch_gather(PatchView& view);
Shapes infer_one_hot(const NodeView& view);
Factors factor_one_hot(const NodeView& view);
void patch_one_hot(PatchView& view);
Shapes infer_same(const NodeView& view);
Factors factor_cast_like(const NodeView& view);
Shapes infer_compress(const NodeView& view);
Factors factor_compress(const NodeView& view);
Factors factor_reverse_sequence(const NodeView& view);
Shapes infer_non_zero(const NodeView& view);
Shapes infer_unique(const NodeView& view);
Shapes infer_non_max_suppression(const NodeView& view);
Factors factor_tensor_scatter(const NodeView& view);
Shapes infer_gather_elements(const NodeView& view);
Shapes infer_gather_nd(const NodeView& view);
Factors factor_gather_nd(const NodeView& view);
Factors factor_scatter_nd(const NodeView& view);
void patch_scatter_nd(PatchView& view);
Factors factor_cum_sum(const NodeView& view);
Factors factor_trilu(const NodeView& view);
Factors factor_gather_elements(const NodeView& view);
Factors factor_scatter_elements(const NodeView& view);

// expand.cc: repeated elements
Shapes infer_expand(const NodeView& view);
Factors factor_expand(const NodeView& view);
void patch_expand(PatchView& view);
Shapes infer_constant_of_shape(const NodeView& view);
Factors factor_constant_of_shape(const NodeView& view);
void patch_constant_of_shape(PatchView& view);
Shapes infer_tile(const NodeView& view);
Factors factor_tile(const NodeView& view);

// reduce.cc: axes that are treated as a whole
Shapes infer_reduce(const NodeView& view);
Factors factor_sum(const NodeView& view);   ///< zero adds nothing
Factors factor_mean(const NodeView& view);  ///< depends on the number of elements
Factors factor_mean_variance(const NodeView& view);
Shapes infer_arg(const NodeView& view);
Shapes infer_top_k(const NodeView& view);
Factors factor_along_axis(const NodeView& view);  ///< one axis is pinned, all others pass through
Factors factor_along_last(const NodeView& view);  ///< likewise; by default the last
Shapes infer_dft(const NodeView& view);
Factors factor_dft(const NodeView& view);
Shapes infer_stft(const NodeView& view);

// places.cc: places that a node chooses along an axis, and that others read
class FactorBuilder;
/// Do places that the node chooses along an axis of this length only select along axes that are as
/// long? What else they are used for depends on how many there are.
bool only_selects(const NodeView& view, int64_t length);
/// The axis along which places were chosen.
struct ChosenAxis {
  ValueId scores = kNone;
  int axis = 0;
};
std::optional<ChosenAxis> chosen_axis(const NodeView& view, ValueId places);
/// Ties a dimension to the axis along which the places that the node reads were chosen. Returns
/// false if they come from elsewhere.
bool tie_to_chosen(FactorBuilder& builder, const NodeView& view, ValueId along, int dim);
/// Chosen places that are compared with one of them, which then may not leave, or with each.
Factors factor_matches(const NodeView& view);
void patch_matches(PatchView& view);

// einsum.cc: the equation is the notation
notation::Line line_of_einsum(const NodeView& view);
Shapes infer_einsum(const NodeView& view);
Factors factor_einsum(const NodeView& view);

// attention.cc
Shapes infer_attention(const NodeView& view);
Factors factor_attention(const NodeView& view);
void patch_attention(PatchView& view);
Shapes infer_rotary(const NodeView& view);
Factors factor_rotary(const NodeView& view);

// quantised.cc: codes of a few bits
void patch_matmul_of_bits(PatchView& view);
notation::Line line_of_coded_experts(const NodeView& view);
Shapes infer_blocks(const NodeView& view);
Factors factor_blocks(const NodeView& view);
Shapes infer_coded_experts(const NodeView& view);
Factors factor_coded_experts(const NodeView& view);

// control.cc: nodes that run subgraphs
Shapes infer_control(const NodeView& view);
Factors factor_control(const NodeView& view);

// zero.cc: behaviour on zeros that depends on operands
ZeroBehaviour zero_of_clip(const NodeView& view);
ZeroBehaviour zero_of_fused(const NodeView& view);
ZeroBehaviour zero_of_pad(const NodeView& view);
ZeroBehaviour zero_of_pow(const NodeView& view);
ZeroBehaviour zero_of_constant_of_shape(const NodeView& view);
ZeroBehaviour zero_of_expand(const NodeView& view);
ZeroBehaviour zero_of_rnn(const NodeView& view);
ZeroBehaviour zero_of_gru(const NodeView& view);
ZeroBehaviour zero_of_lstm(const NodeView& view);

/// Shapes of the inputs of the node's bodies in the first iteration, as far as the operands
/// determine them.
Shapes shapes_inside(const NodeView& view);

/// Inputs of the body and the results that replace them in the next iteration.
std::vector<std::pair<ValueId, ValueId>> carried(const NodeView& view);

/// Is the node in a branch of If that these sizes do not take, and that fits whatever becomes of
/// the channels that it reads?
bool is_passed_over(const NodeView& view);

/// Returns how often a Loop runs: its trip count if that is known, else an assumption.
int64_t turns_of(const NodeView& view);

}  // namespace parsimony::operators
