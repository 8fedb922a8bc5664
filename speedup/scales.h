// Numbers that encode the length of an axis: the 1/sqrt(d) of an attention, the sqrt(width) after
// an embedding, the 1/n of a mean written as a sum.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "parsimony/masks/coupling.h"
#include "parsimony/masks/mask.h"
#include "parsimony/speedup/plan.h"

namespace parsimony {

/// The scales whose axis can shrink, in graph order: scalar factors and divisors near a contraction
/// of that axis (MatMul, Gemm, Einsum, ReduceSum, …, with only operators in between that commute
/// with a factor) or after an embedding, the attribute `scale` of attention and `alpha` of a
/// product. Between an activation and a weight, 1/2, 1 and 2 are taken as plain numbers.
std::vector<Scale> find_scales(const Graph& graph, const Facts& facts, const Coupling& coupling);

/// "1/sqrt(64)", "64", "64^-1/4".
std::string formula(const Scale& scale, int64_t size);

/// The scales that keep their value although `masks` cut their axis. Numbers that are computed from
/// a shape at run time, and are not among the plan's integers, do not count.
std::vector<CutScale> frozen_scales(const Graph& graph, const Facts& facts,
                                    const Coupling& coupling, const AxisMasks& masks,
                                    const Plan& plan);

/// Updates them: the plan gives each reader its new value instead of freezing the old one.
void rescale(const Graph& graph, const std::vector<CutScale>& scales, Plan& plan);

}  // namespace parsimony
