// A linear layer as one matrix product: the operand of its weight matrix, row by row.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "parsimony/graph/graph.h"

namespace parsimony {

/// The operand of the matrix of a Conv, ConvTranspose, Gemm or MatMul: [groups, rows, in], a row
/// per sample and position. Convolutions: what of x [n c ..s] meets the elements of the weight's
/// kernel, [c / groups, ..k] flattened, for any stride, padding, dilation and groups. Others: x
/// with its last axis as `in`; one group.
/// @param steps  by spatial axis: only every so many positions; empty: all
/// @throws UnsupportedError for other operators
at::Tensor linear_rows(const Node& node, const at::Tensor& x, const at::Tensor& weight,
                       const std::vector<int64_t>& steps = {});

/// Outputs of that layer, in the same order: [groups, rows, out / groups]. `axis` is that of the
/// channels; negative counts from the end.
at::Tensor answer_rows(const at::Tensor& answer, int64_t axis, int64_t groups);

}  // namespace parsimony

namespace parsimony::torch_io {

/// Of a Conv with a kernel of these dims, [(g o) i ..k]: the windows of x [n, (g i), ..s] as
/// [g, n·positions, i·k], columns in the kernel's order. The layer computes rows · kernelᵀ, group
/// by group.
at::Tensor conv_operand(const Node& node, const at::Tensor& x, const Shape& kernel,
                        const std::vector<int64_t>& steps = {});

/// Of a ConvTranspose with a kernel [(g i) o ..k], whose explicit padding is known: what each of
/// its outputs sums, [g, n·positions, i·k].
at::Tensor spread_operand(const Node& node, const at::Tensor& x, const Shape& kernel,
                          const std::vector<int64_t>& steps = {});

/// Of a ConvTranspose: x [n, (g i), ..s] as [g, n·positions, i].
at::Tensor conv_transpose_operand(const Node& node, const at::Tensor& x);

/// Of Gemm and MatMul with the data as operand `input`: [1, rows, in].
at::Tensor matrix_operand(const Node& node, const at::Tensor& x, int input);

}  // namespace parsimony::torch_io
