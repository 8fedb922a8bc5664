// Criteria over single elements of a whole network, and the channels that die of them.
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
  std::vector<ElementMask> zero_masks;  ///< which elements these are, one mask each
  std::vector<PrunedMatrix> matrices;   ///< of the others, in the order of the layers
  int dead = 0;                         ///< channels that died and are removed
  std::vector<std::string> notes;       ///< matrices that keep their elements, and why

  /// Does what stays keep its values?
  bool only_zeros() const;

  /// Of every tensor that loses elements.
  std::vector<ElementMask> masks() const;
};

struct ElementOptions {
  const Statistics* statistics = nullptr;  ///< of data that ran through the network, or null
  bool exact_only = false;                 ///< dead channels of groups that mix stay
  bool remove_dead = true;                 ///< otherwise the caller finds what can go
};

/// Prunes elements of what `masks` leave of the weights, and removes from `masks` the channels that
/// are dead then; but for those whose removal would shift the neighbours of an N:M pattern.
/// @throws as prune_matrix and prune_elements do
ElementPruning zero_elements(const Graph& graph, const Coupling& coupling, const Settings& settings,
                             const ElementOptions& options, AxisMasks& masks);

/// Adds the weight matrices whose InputMoments the requests read, and who reads them.
void add_element_needs(const Graph& graph, const Settings& settings, Needs& needs);

}  // namespace parsimony
