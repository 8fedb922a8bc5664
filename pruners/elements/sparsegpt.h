// SparseGPT: elements are removed column by column, and those to their right compensate.
#pragma once

#include <Eigen/Core>

#include "parsimony/pruners/elements/matrix.h"

namespace parsimony::elements {

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
