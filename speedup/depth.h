// What happened to a network's residual blocks.
#pragma once

#include <string>
#include <vector>

#include "parsimony/masks/cost.h"

namespace parsimony {

struct BlockOutcome {
  std::string add;        ///< first output of the addition
  std::string label;      ///< display name
  double influence = 0;   ///< 1 - mean cosine of the block's input and output, 0..2
  Cost cost;              ///< removed with the block; MACs of one sample
  int nodes = 0;          ///< removed with it, including the addition
  bool excluded = false;  ///< the configuration excludes one of its layers
  bool removed = false;
};

/// One way to meet a budget: remove this many blocks, and channels for the rest.
struct DepthCandidate {
  int removed = 0;
  Cost cost;         ///< of the small network
  double error = 0;  ///< output error on the calibration samples, see docs/guide/depth.md
  bool met = true;   ///< the budget
};

struct DepthReport {
  std::vector<BlockOutcome> blocks;        ///< in topological order
  std::vector<DepthCandidate> candidates;  ///< of `auto`, by number of blocks
};

}  // namespace parsimony
