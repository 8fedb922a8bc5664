// Which elements of one matrix are kept: pure functions of scores.
#pragma once

#include "parsimony/pruners/elements/matrix.h"

namespace parsimony::elements {

/// Keeps the n highest of every group of m; of equal scores the left one. A group that the end of
/// its run cuts short keeps at most n too.
/// @source Zhou et al., Learning N:M Fine-grained Structured Sparse Neural Networks From Scratch,
/// ICLR 2021, https://arxiv.org/abs/2102.04010
Keep keep_n_of_m(const Matrix& scores, NmPattern pattern, Runs runs);

/// Removes the `count` lowest of the whole matrix; of equal scores first the upper, then the left
/// one.
Keep keep_all_but(const Matrix& scores, int64_t count);

/// Removes the floor(ratio · columns) lowest of every row; of equal scores the left one first.
Keep keep_of_rows(const Matrix& scores, double ratio);

/// Removes the floor(ratio · blocks) blocks of least root mean square; blocks of [block_rows,
/// block_columns] start at the upper left corner of every run, and may be smaller at the border. Of
/// equal blocks first the upper, then the left one.
/// @source Narang et al., Block-Sparse Recurrent Neural Networks, 2017,
/// https://arxiv.org/abs/1711.02782
Keep keep_blocks(const Matrix& weights, int block_rows, int block_columns, double ratio, Runs runs);

/// score[i, j] = |w[i, j]| · ‖x[j]‖₂ with ‖x[j]‖² = second[j, j], the sum over all inputs.
/// @source Sun et al., A Simple and Effective Pruning Approach for Large Language Models, 2023,
/// https://arxiv.org/abs/2306.11695
Matrix wanda_scores(const Matrix& weights, const Eigen::MatrixXd& second);

}  // namespace parsimony::elements
