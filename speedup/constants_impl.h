// The decisions about constants, for the arithmetic that follows. Private to speedup/.
#pragma once

#include <string>
#include <vector>

#include "parsimony/speedup/constants.h"
#include "parsimony/speedup/reduction_sites_impl.h"

namespace parsimony {

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
