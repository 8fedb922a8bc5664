// What a run keeps of its network for the ledger, and when it has trained enough.
#pragma once

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "parsimony/report/ledger_point.h"
#include "parsimony/training/net/net.h"

namespace parsimony::training {

struct Record {
  LedgerPoint point;
  std::vector<Plan> plans;
  std::map<std::string, Shape> dense_shapes;  ///< of the parameters

  bool in_warm_up() const { return point.before.total == 0; }
  /// Sizes, proof and layers after a cut; keeps its plan.
  void add(Cut cut, Net& net);
};

/// Ends a training that gets no better.
struct EarlyStop {
  double best = -1;
  int worse = 0;  ///< epochs since `best`

  /// `epochs` after the last score. @returns is it time to stop? Never if `patience` is 0.
  bool after(double score, int epochs, int patience) {
    if (patience == 0) return false;
    worse = score > best ? 0 : worse + epochs;
    best = std::max(best, score);
    return worse >= patience;
  }
};

}  // namespace parsimony::training
