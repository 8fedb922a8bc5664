// The invariants of docs/internals/invariants.md as functions: each returns what is wrong, or
// nothing.
#pragma once

#include <string>

#include "tests/properties/workbench.h"

namespace parsimony::test {

/// P1: prune nothing, and the bytes are the same.
std::string pruning_nothing(const Workbench& bench, bool libonnx);

/// P3: what is predicted for these masks is what comes out.
std::string prediction(const Workbench& bench, const AxisMasks& masks, bool libonnx);

/// P4: any one channel of any one group can be removed alone, and the graph stays valid.
std::string any_one_channel(const Workbench& bench, bool libonnx);

/// P5: no proper part of a channel could be removed alone.
std::string maximality(const Workbench& bench, bool libonnx);

/// Where another axis is the largest after the first slicing, or a channel came back because its
/// dimension would have been empty, P6 has nothing to compare.
inline constexpr char kOtherGroups[] = "other groups after slicing";

/// P6: slice A, then B, is slice A∪B.
std::string slicing_twice(const Workbench& bench, bool libonnx);

/// P8: more sparsity never costs more.
std::string monotone_cost(const Workbench& bench, bool libonnx);

/// P9: the file is written as it was read, unknown fields too.
std::string lossless(const Workbench& bench, bool libonnx);

/// P10: a plan that went through JSON gives the same bytes.
std::string replayed(const Workbench& bench, bool libonnx);

/// P3 and P4 where competing axes are chosen in another order, and some refused.
std::string shuffled(const Workbench& bench, unsigned seed, bool libonnx);

}  // namespace parsimony::test
