// The same recipe at many sparsities: each point once, whoever is killed in between.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "parsimony/configs/recipe.h"
#include "parsimony/report/ledger.h"
#include "parsimony/training/data/dataset.h"
#include "parsimony/training/net/net.h"
#include "parsimony/training/run/run.h"

namespace parsimony::training {

struct SweepPoint {
  std::string criterion;  ///< "none" for the dense network
  double sparsity = 0;
  uint64_t seed = 0;

  bool operator==(const SweepPoint&) const = default;
};

/// All combinations, each once, and the dense network once for every seed; seed by seed.
std::vector<SweepPoint> points_of(const Recipe& recipe);

/// The recipe of one point.
Recipe at_point(const Recipe& recipe, const SweepPoint& point);

struct SweepOptions {
  RunOptions run;
  std::string folder;  ///< of the ledger; also models/, and checkpoints while they are needed
  Shard shard;
  LedgerOrigin origin;
};

/// Trains every point that the folder's ledger lacks. Several processes may work on one folder at
/// once: each point is claimed by a file lock, which the system releases when its owner dies. A
/// point that was begun goes on from its last epoch; points of a seed share their warm-up, which
/// stays in checkpoints/ for points that are added later.
/// @returns the points that are still missing because others are at work on them
/// @throws IoError, and what training throws
int sweep(const std::function<std::unique_ptr<Net>()>& make, const Dataset& data,
          const Recipe& recipe, const SweepOptions& options);

}  // namespace parsimony::training
