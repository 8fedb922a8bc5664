// The optimal brain surgeon over whole channels: what a removal costs once what remains was fitted.
#pragma once

#include <Eigen/Core>
#include <set>
#include <string>
#include <vector>

#include "parsimony/graph/graph.h"
#include "parsimony/masks/coupling.h"
#include "parsimony/pruners/statistics.h"

namespace parsimony::criteria {

/// A matrix that reads the channels of a group.
struct ReadingMatrix {
  Eigen::MatrixXd gram;                       ///< Wᵀ W, [in, in]
  Eigen::MatrixXd second;                     ///< Σ x xᵀ of what it reads, [in, in]
  std::vector<std::vector<int64_t>> columns;  ///< of each channel
};

/// Removes channel after channel, each time those of least loss, and fits what remains to what the
/// whole matrix gives:
///
///     loss = Σ over matrices  min ‖W X − Ŵ X_kept‖² / ‖W X‖²
///
/// With H = Σ x xᵀ + λ I, channel c with columns S costs tr(W_S (H⁻¹_SS)⁻¹ W_Sᵀ). H⁻¹ and W are
/// updated after each round, which removes a channel, or of large groups several.
/// @param ridge  λ relative to the mean of the diagonal of Σ x xᵀ
/// @returns per channel the loss once it and those before it are removed
/// @source Hassibi and Stork, Second Order Derivatives for Network Pruning: Optimal Brain Surgeon,
/// NeurIPS 1992, with channels in place of elements
std::vector<double> removal_losses(std::vector<ReadingMatrix> matrices, int channels, double ridge);

/// Returns the matrices whose InputMoments the criterion reads: those that read the channels of the
/// group along one axis.
std::vector<std::string> surgeon_matrices(const Graph& graph, const Group& group);

}  // namespace parsimony::criteria
