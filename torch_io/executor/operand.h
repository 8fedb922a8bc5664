// What a layer's weight matrix is multiplied with, one row per position.
#pragma once

#include <ATen/core/Tensor.h>

#include "parsimony/graph/graph.h"

namespace parsimony::torch_io {

/// Of a Conv with a kernel of these dims, [(g o) i ..k]: the windows of x [n, (g i), ..s] as
/// [g, n·positions, i·k], columns in the kernel's order. The layer computes rows · kernelᵀ, group
/// by group.
at::Tensor conv_operand(const Node& node, const at::Tensor& x, const Shape& kernel);

/// Of a ConvTranspose: x [n, (g i), ..s] as [g, n·positions, i].
at::Tensor conv_transpose_operand(const Node& node, const at::Tensor& x);

/// Of Gemm and MatMul with the data as operand `input`: [1, rows, in].
at::Tensor matrix_operand(const Node& node, const at::Tensor& x, int input);

}  // namespace parsimony::torch_io
