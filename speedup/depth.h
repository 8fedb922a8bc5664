// What became of a network's residual blocks.
#pragma once

#include <string>
#include <vector>

#include "parsimony/masks/cost.h"

namespace parsimony {

struct BlockOutcome {
  std::string add;        ///< first output of the addition
  std::string label;      ///< what people call it
  double influence = 0;   ///< 1 - mean cosine of the block's input and output, 0..2
  Cost cost;              ///< of what goes with the block; MACs of one sample
  int nodes = 0;          ///< that go with it, the addition among them
  bool excluded = false;  ///< the configuration leaves one of its layers whole
  bool removed = false;
};

/// One way to meet a budget: so many blocks go, widths do the rest.
struct DepthCandidate {
  int removed = 0;
  Cost cost;         ///< of the small network
  double error = 0;  ///< of its outputs on the calibration samples, see docs/guide/depth.md
  bool met = true;   ///< the budget
};

struct DepthReport {
  std::vector<BlockOutcome> blocks;        ///< in topological order
  std::vector<DepthCandidate> candidates;  ///< of `auto`, by number of blocks
};

}  // namespace parsimony
