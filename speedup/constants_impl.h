// What was decided about constants, for the arithmetic that follows. Private to speedup/.
#pragma once

#include <string>
#include <vector>

#include "parsimony/speedup/constants.h"
#include "parsimony/speedup/exits_impl.h"

namespace parsimony {

/// One node that sums over constants.
struct Sum {
  Exit exit;
  std::vector<double> constants;  ///< per index of the operand's dimension; 0 where none is known
  int64_t carrier = kNone;        ///< index that carries those of removed channels
};

struct ConstantFolding::State {
  const Graph& graph;
  const Coupling& coupling;
  std::vector<ElementMask> masks;
  AxisMasks channels;
  std::vector<Sum> sums;
  int carriers = 0;
  std::vector<std::string> notes;
};

}  // namespace parsimony
