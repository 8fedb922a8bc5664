// Criteria over single elements of a whole network, and the channels that become zero by them.
#pragma once

#include <string>
#include <vector>

#include "parsimony/masks/axis_mask.h"
#include "parsimony/pruners/elements/prune_matrix.h"
#include "parsimony/pruners/level.h"
#include "parsimony/pruners/settings.h"
#include "parsimony/pruners/statistics.h"

namespace parsimony {

struct ElementPruning {
  std::vector<TensorZeros> zeros;       ///< of criterion "level"
  std::vector<ElementMask> zero_masks;  ///< their elements, one mask each
  std::vector<PrunedMatrix> matrices;   ///< of the other criteria, in the order of the layers
  int zero_channels = 0;                ///< zero channels that are removed
  std::vector<std::string> notes;       ///< matrices that are not pruned, and why

  /// Do the remaining elements keep their values?
  bool only_zeros() const;

  /// One mask for every tensor that loses elements.
  std::vector<ElementMask> masks() const;
};

struct ElementOptions {
  const Statistics* statistics = nullptr;   ///< of data that ran through the network, or null
  Mixing mixing = Mixing::kExceptOutcomes;  ///< zero channels of other groups are not removed
  bool drop_zero_channels = true;           ///< otherwise the caller removes them
};

/// Prunes elements of the weights as sliced by `masks`, and removes from `masks` the channels that
/// are then zero, except where their removal would shift the neighbours of an N:M pattern.
/// @throws as prune_matrix and prune_elements do
ElementPruning zero_elements(const Graph& graph, const Coupling& coupling, const Settings& settings,
                             const ElementOptions& options, AxisMasks& masks);

/// Adds the weight matrices whose InputMoments the requests need, and the criteria that need them.
void add_element_needs(const Graph& graph, const Settings& settings, Needs& needs);

}  // namespace parsimony
