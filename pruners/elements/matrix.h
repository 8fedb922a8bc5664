// Selection of the elements that one matrix keeps: pure functions of scores, and SparseGPT, where
// elements that stay compensate for those that go. Matrices are double, row-major.
#pragma once

#include <Eigen/Core>
#include <algorithm>
#include <cstdint>

#include "parsimony/pruners/elements/rule.h"

namespace parsimony::elements {

/// [rows, columns]: a row makes one output, a column reads one input.
using Matrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

/// [rows, columns]; 1 keeps.
using Keep = Eigen::Array<uint8_t, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

/// Columns in runs of `length` (the inputs of one position of the kernel), each divided into groups
/// of m from its start; the last group of a run may be shorter.
struct Runs {
  int64_t length = 0;

  /// The column after the group that holds column `c`.
  int64_t group_end(int64_t c, int m) const {
    const int64_t begin = c - c % length;
    return begin + std::min<int64_t>(length, ((c - begin) / m + 1) * m);
  }
};

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

struct SparseGptOptions {
  double ratio = 0.5;      ///< share of the elements to remove; ignored with a pattern
  NmPattern pattern = {};  ///< at most n of m stay, or none
  Runs runs = {};          ///< of the columns, for the pattern
  double damping = 0.01;   ///< of the mean of the diagonal, added to it
  int block = 128;         ///< columns whose elements are selected at once
};

struct SparseGptResult {
  Matrix weights;  ///< [rows, columns], zero where `keep` is
  Keep keep;
};

/// Solves min ‖W X − Ŵ X‖² over sparse Ŵ, greedily. With H = Σ x xᵀ + λ I and U the upper Cholesky
/// factor of H⁻¹ = Uᵀ U, w[i, j] is removed if w[i, j]² / U[j, j]² is among the lowest of its block
/// of columns (floor(ratio · elements) over the whole matrix) or of its group of m; then w[i, k] -=
/// w[i, j] / U[j, j] · U[j, k] for all k > j. Of equal scores first the upper, then the left one is
/// removed. Columns of inputs that are always zero become zero.
///
/// @param weights [rows, columns]
/// @param second Σ x xᵀ, [columns, columns]; its scale does not matter
/// @source Frantar and Alistarh, SparseGPT: Massive Language Models Can Be Accurately Pruned in
/// One-Shot, 2023, https://arxiv.org/abs/2301.00774
SparseGptResult sparsegpt(const Matrix& weights, const Eigen::MatrixXd& second,
                          const SparseGptOptions& options);

}  // namespace parsimony::elements
