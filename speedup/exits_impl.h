// Where channels end: the nodes that sum over them. Private to speedup/.
#pragma once

#include <cstdint>
#include <vector>

#include "parsimony/graph/operators/factor.h"
#include "parsimony/masks/contents.h"
#include "parsimony/masks/coupling.h"

namespace parsimony {

/// One operand of one node that sums over a dimension with channels.
struct Exit {
  NodeId node = kNone;
  ValueId value = kNone;  ///< the operand
  int dim = 0;
  LineId line = kNone;
  std::vector<std::pair<ValueId, int>> partners;  ///< what else has the axis: zero there stops it

  /// The weight that multiplies the channels, where it is one that can be changed: floating point,
  /// read here only, of Conv, ConvTranspose, Gemm or MatMul; else kNone.
  ValueId weight = kNone;
  int axis = 0;
  /// Takes the sum of constants exactly: there is one, and no padding; else kNone.
  ValueId bias = kNone;
  double bias_scale = 1;   ///< of a sum on its way into the bias: alpha / beta of Gemm
  bool can_carry = false;  ///< every output sees every channel: one channel can stand for another

  /// Index along the weight's axis at which an index of the operand is multiplied.
  int64_t weight_index(int64_t index, const Shape& weight_dims) const {
    return index % weight_dims[axis];
  }
};

std::vector<Exit> find_exits(const Graph& graph, const Facts& facts, const Coupling& coupling);

}  // namespace parsimony
