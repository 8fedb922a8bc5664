// The nodes that sum over channels, and the decisions about the constants they sum, for the
// arithmetic that follows. Private to speedup/.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "parsimony/graph/operators/factor.h"
#include "parsimony/masks/coupling.h"
#include "parsimony/masks/slice_values.h"
#include "parsimony/speedup/constants.h"

namespace parsimony {

/// One operand of one node that sums over a dimension with channels.
struct ReductionSite {
  NodeId node = kNone;
  ValueId value = kNone;  ///< the operand
  int dim = 0;
  DimClassId dim_class = kNone;
  /// Other operands with the axis: zero there cancels the channel.
  std::vector<std::pair<ValueId, int>> partners;

  /// The weight that multiplies the channels, if it can be changed: a floating-point weight of
  /// Conv, ConvTranspose, Gemm or MatMul with no other reader; else kNone.
  ValueId weight = kNone;
  int axis = 0;
  /// The bias that can absorb the sum of constants exactly: there is one, and no padding; else
  /// kNone.
  ValueId bias = kNone;
  double bias_scale = 1;    ///< applied to a sum folded into the bias: alpha / beta of Gemm
  bool can_absorb = false;  ///< every output reads every channel, so one channel can absorb another

  /// Index along the weight's axis that multiplies an index of the operand.
  int64_t weight_index(int64_t index, const Shape& weight_dims) const {
    return index % weight_dims[axis];
  }
};

std::vector<ReductionSite> find_reduction_sites(const Graph& graph, const Facts& facts,
                                                const Coupling& coupling);

/// A reduction over constants.
struct Sum {
  ReductionSite site;
  std::vector<double> constants;  ///< per index of the operand's dimension; 0 if unknown
  int64_t absorber = kNone;       ///< index of the channel that absorbs those of removed channels
};

struct ConstantFolding::State {
  const Graph& graph;
  const Coupling& coupling;
  std::vector<ElementMask> masks;
  AxisMasks channels;
  std::vector<Sum> sums;
  int absorbers = 0;
  std::vector<std::string> notes;
};

}  // namespace parsimony
