// A linear layer as one matrix product: what is multiplied, row by row.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "parsimony/graph/graph.h"

namespace parsimony {

/// What the matrix of a Conv, Gemm or MatMul is multiplied with: [groups, rows, in], a row per
/// sample and position. Conv: the windows of x [n c ..s] in the order of its weight, [c / groups,
/// ..k] flattened, for any stride, padding, dilation and groups. Others: x with its last axis as
/// `in`; one group.
/// @throws UnsupportedError for other operators
at::Tensor linear_rows(const Node& node, const at::Tensor& x, const at::Tensor& weight);

/// Answers of that layer, in the same order: [groups, rows, out / groups]. `axis` is that of the
/// channels; negative counts from the end.
at::Tensor answer_rows(const at::Tensor& answer, int64_t axis, int64_t groups);

/// How many groups such a node has.
int64_t groups_of(const Node& node);

}  // namespace parsimony
