// Numbers that a network has from the length of an axis: the 1/sqrt(d) of an attention, the
// sqrt(width) behind an embedding, the 1/n of a mean that is spelled as a sum.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "parsimony/graph/operators/factor.h"
#include "parsimony/masks/axis_mask.h"
#include "parsimony/masks/coupling.h"
#include "parsimony/speedup/plan.h"

namespace parsimony {

/// One number, read by one node, that is a power of the length of an axis.
struct Scale {
  NodeId node = kNone;
  int input = -1;       ///< the operand that it is; -1: the attribute `what`
  std::string what;     ///< "operand 1", "scale"
  std::string tensor;   ///< name of the operand; empty for an attribute
  HostTensor value;     ///< of one element; of an attribute also where the operator implies it
  double exponent = 0;  ///< value = size ^ exponent, within the rounding of its type
  int64_t size = 0;     ///< of the axis, in the original
  LineId line = kNone;  ///< the axis: of a line's indices, those of (index / stride) % size
  int64_t stride = 1;
  std::vector<int> groups;  ///< that shorten the axis
};

/// Those whose axis can shrink, in the graph's order: scalar factors and divisors near a sum over
/// that axis (MatMul, Gemm, Einsum, ReduceSum, …; between them stand only operators that a factor
/// passes) or behind an embedding, the attribute `scale` of attention and `alpha` of a product.
/// Where an activation meets a weight, 1/2, 1 and 2 are taken for the numbers that they are.
std::vector<Scale> find_scales(const Graph& graph, const Facts& facts, const Coupling& coupling);

/// "1/sqrt(64)", "64", "64^-1/4".
std::string formula(const Scale& scale, int64_t size);

/// A scale whose axis was cut.
struct CutScale {
  Scale scale;
  int64_t kept = 0;     ///< length of the axis now
  HostTensor would_be;  ///< kept ^ exponent, as its type rounds it
};

/// The scales that keep their value although `masks` cut their axis. What follows by itself, being
/// computed from a shape and not among the plan's integers, is none.
std::vector<CutScale> frozen_scales(const Graph& graph, const Facts& facts,
                                    const Coupling& coupling, const AxisMasks& masks,
                                    const Plan& plan);

/// Makes them follow: the plan gives each reader its new value, in place of freezing the old one.
void rescale(const Graph& graph, const std::vector<CutScale>& scales, Plan& plan);

}  // namespace parsimony
