// SparseGPT: elements go one column after the other, and those to their right make up for them.
#pragma once

#include <Eigen/Core>

#include "parsimony/pruners/elements/matrix.h"

namespace parsimony::elements {

struct SparseGptOptions {
  double ratio = 0.5;      ///< share of the elements that go; a pattern has its own
  NmPattern pattern = {};  ///< at most n of m stay, or none
  Runs runs = {};          ///< of the columns, for the pattern
  double damping = 0.01;   ///< of the mean of the diagonal, added to it
  int block = 128;         ///< columns for which the elements that go are chosen at once
};

struct SparseGptResult {
  Matrix weights;  ///< [rows, columns], zero where `keep` is
  Keep keep;
};

/// Solves min ‖W X − Ŵ X‖² over sparse Ŵ, greedily. With H = Σ x xᵀ + λ I and U the upper Cholesky
/// factor of H⁻¹ = Uᵀ U, column j goes where w[i, j]² / U[j, j]² is lowest, the lowest of its block
/// of columns (of the whole matrix floor(ratio · elements) go) or of its group of m; then w[i, k]
/// -= w[i, j] / U[j, j] · U[j, k] for all k > j. Of equal scores the upper, then the left one goes
/// first. Inputs that are always zero lose their column.
///
/// @param weights [rows, columns]
/// @param second Σ x xᵀ, [columns, columns]; its scale does not matter
/// @source Frantar and Alistarh, SparseGPT: Massive Language Models Can Be Accurately Pruned in
/// One-Shot, 2023, https://arxiv.org/abs/2301.00774
SparseGptResult sparsegpt(const Matrix& weights, const Eigen::MatrixXd& second,
                          const SparseGptOptions& options);

}  // namespace parsimony::elements
