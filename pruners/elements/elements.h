// Criteria over single elements of a whole network, and the channels that become zero by them.
#pragma once

#include <cstddef>
#include <string>
#include <variant>
#include <vector>

#include "parsimony/graph/graph.h"
#include "parsimony/graph/slice.h"
#include "parsimony/masks/mask.h"
#include "parsimony/pruners/elements/contraction.h"
#include "parsimony/pruners/elements/rule.h"
#include "parsimony/pruners/level.h"
#include "parsimony/pruners/settings.h"
#include "parsimony/pruners/statistics.h"

namespace parsimony {

/// A weight with new values.
struct PrunedMatrix {
  std::string tensor;
  DType dtype = DType::kFloat32;
  std::string criterion;  ///< "sparsegpt:2:4"
  ElementRule rule;
  elements::Contraction contraction;
  ElementMask mask;  ///< over the whole tensor; zero in removed slices too
  /// The whole tensor's elements, of its type, row-major; zero where the mask is.
  std::vector<std::byte> values;
};

namespace elements {

/// Checks the InputMoments::second of a layer with this weight.
/// @throws ModelError if they do not fit the weight, or are not finite
void check_moments(const Weight& weight, const View& view, const Eigen::MatrixXd& second);

/// Why a tensor is not pruned.
using Refusal = std::string;

/// Prunes a weight as sliced by `cuts`. Ratios refer to the remaining elements of each row, block
/// of columns or matrix; for grouped convolutions, of each group.
/// @param statistics null if there are none
/// @throws ConfigError if the criterion needs data and has none; ModelError for a NaN, or for
/// moments that do not fit the weight
std::variant<PrunedMatrix, Refusal> prune_matrix(const Graph& graph, const ElementTask& task,
                                                 const Request& request,
                                                 const std::vector<AxisKeep>& cuts,
                                                 const Statistics* statistics);

}  // namespace elements

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
