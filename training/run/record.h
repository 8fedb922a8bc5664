// Measures and records a run's results for the ledger, and decides on early stopping.
#pragma once

#include <ATen/core/Tensor.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "parsimony/report/ledger.h"
#include "parsimony/training/loop/trainer.h"
#include "parsimony/training/net/trainable_model.h"

namespace parsimony::training {

struct Record {
  LedgerPoint point;
  std::vector<Plan> plans;
  std::map<std::string, Shape> dense_shapes;  ///< of the parameters

  bool in_warm_up() const { return point.before.total == 0; }
  /// Records sizes, verification and layers after a cut; keeps its plan.
  void add(PruneResult cut, double seconds, TrainableModel& net);
  /// Records what the ranks sent and their speed. @param first  whether it is its stage's first
  /// epoch
  void add(const EpochTimes& epoch, const RankGroup& ranks, bool first);
};

/// Returns the outputs of each layer now and in the dense network, whose parameters had
/// `dense_shapes`. `plans` determine their axis.
std::vector<LedgerPoint::Layer> layer_widths(TrainableModel& net, const std::vector<Plan>& plans,
                                             const std::map<std::string, Shape>& dense_shapes);

/// Returns the size of the files that `save` writes. `scratch` is a folder to create and remove;
/// empty: a temporary one. @throws IoError
int64_t bytes_of(TrainableModel& net, const at::Tensor& example, const std::string& scratch);

/// Returns the milliseconds of `forward` on the batch `x` in evaluation mode: the median of 15,
/// after 3.
double latency_of(TrainableModel& net, const at::Tensor& x);

/// Early stopping.
struct EarlyStop {
  double best = -1;
  int worse = 0;  ///< epochs since `best`

  /// Call `epochs` after the last score. @returns whether to stop; never if `patience` is 0
  bool after(double score, int epochs, int patience) {
    if (patience == 0) return false;
    worse = score > best ? 0 : worse + epochs;
    best = std::max(best, score);
    return worse >= patience;
  }
};

}  // namespace parsimony::training
