// Which weight slices a criterion scores a channel by.
#pragma once

#include <Eigen/Core>
#include <vector>

#include "parsimony/graph/graph.h"
#include "parsimony/masks/coupling.h"

namespace parsimony {

/// Members without duplicates: several nodes may read one value.
enum class Which : uint8_t {
  kProducing,   ///< matrices (rank ≥ 2) that produce the channels; all members if there are none
  kConsuming,   ///< matrices that consume them; may be none
  kParameters,  ///< all except running statistics, divisors and settings
};
std::vector<const Member*> members_of(const Graph& graph, const Group& group, Which which);

/// The signed elements of each channel's slice of one member, in double; quantised weights are
/// dequantised. [channels, elements of a slice]
/// @throws ModelError naming tensor and element if there is a NaN
Eigen::MatrixXd slices_of(const Graph& graph, const Member& member);

/// The slices of several members side by side.
Eigen::MatrixXd slices_of(const Graph& graph, const Group& group, Which which);

}  // namespace parsimony
