// Σ x xᵀ over rows x, of which an engine computes a half: the rest is its transpose.
#pragma once

#include <Eigen/Core>
#include <cstddef>
#include <cstdint>
#include <span>

#include "parsimony/engines/engine.h"
#include "parsimony/graph/graph_builder.h"

namespace parsimony {

/// Adds outputs to a graph, blocks of the sums of x [groups, rows, columns].
void ask_squares(GraphBuilder& graph, ValueId x, int64_t columns);

/// Returns how many they are.
size_t square_outputs(int64_t columns);

/// Adds a group's blocks to the lower half of a sum [columns, columns].
void add_squares(std::span<const TensorBytes> blocks, int64_t group,
                 Eigen::Ref<Eigen::MatrixXd> sum);

/// Makes the upper half the transpose of the lower one.
void mirror_squares(Eigen::Ref<Eigen::MatrixXd> sum);

}  // namespace parsimony
