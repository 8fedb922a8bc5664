// Which elements of one matrix stay: pure functions of scores.
#pragma once

#include "parsimony/pruners/elements/matrix.h"

namespace parsimony::elements {

/// The n highest of every group of m stay; of equal scores the left one. A group that is cut short
/// by the end of its run keeps at most n too.
/// @source Zhou et al., Learning N:M Fine-grained Structured Sparse Neural Networks From Scratch,
/// ICLR 2021, https://arxiv.org/abs/2102.04010
Keep keep_n_of_m(const Matrix& scores, NmPattern pattern, Runs runs);

/// The `count` lowest of the whole matrix go; of equal scores the upper, then the left one goes
/// first.
Keep keep_all_but(const Matrix& scores, int64_t count);

/// In every row the floor(ratio · columns) lowest go; of equal scores the left one goes first.
Keep keep_of_rows(const Matrix& scores, double ratio);

/// The floor(ratio · blocks) blocks of least root mean square go, blocks of [block_rows,
/// block_columns] from the upper left corner of every run; those at the border may be smaller. Of
/// equal blocks the upper, then the left one goes first.
/// @source Narang et al., Block-Sparse Recurrent Neural Networks, 2017,
/// https://arxiv.org/abs/1711.02782
Keep keep_blocks(const Matrix& weights, int block_rows, int block_columns, double ratio, Runs runs);

/// score[i, j] = |w[i, j]| · ‖x[j]‖₂ with ‖x[j]‖² = second[j, j], the sum over all inputs.
/// @source Sun et al., A Simple and Effective Pruning Approach for Large Language Models, 2023,
/// https://arxiv.org/abs/2306.11695
Matrix wanda_scores(const Matrix& weights, const Eigen::MatrixXd& second);

/// floor(ratio · count), but 0.29 · 100 is 29.
int64_t floor_of(double ratio, int64_t count);

}  // namespace parsimony::elements
