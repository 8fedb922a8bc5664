// Parameters and multiply-adds of a network, dense or under masks.
#pragma once

#include <cstdint>

#include "parsimony/graph/operators/macs.h"
#include "parsimony/masks/axis_mask.h"
#include "parsimony/masks/element_counts.h"

namespace parsimony {

struct Cost {
  int64_t params = 0;  ///< elements of floating-point and 8-bit weights, as a file holds them
  int64_t macs = 0;    ///< multiply-adds for the probed input shapes
};

/// Is the weight a parameter? Floating-point and 8-bit weights are; index tensors and running
/// statistics of a BatchNormalization are not.
IdVector<WeightId, bool> parameters(const Graph& graph);

/// Cost as a function of masks; prepared once, evaluated often.
class CostModel {
 public:
  CostModel(const Graph& graph, const Facts& facts, const Coupling& coupling);
  Cost dense() const { return dense_; }
  Cost under(const AxisMasks& masks) const;

 private:
  ElementCounts counts_;  ///< of weights, then of multiply-adds
  StoredElements params_;
  int weights_ = 0;
  Cost dense_;
};

}  // namespace parsimony
