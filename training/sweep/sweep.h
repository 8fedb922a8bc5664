// Sweeps: the same recipe at many sparsities, each point once, resumable after crashes.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "parsimony/configs/recipe.h"
#include "parsimony/data/dataset.h"
#include "parsimony/report/ledger.h"
#include "parsimony/training/net/trainable_model.h"
#include "parsimony/training/run/run.h"

namespace parsimony::training {

/// Locks a file during its lifetime, unless another process has locked it. The system releases the
/// lock if the process dies. The file is removed at the end.
class Claim {
 public:
  enum class IfTaken : uint8_t { kGiveUp, kWait };

  /// @throws IoError if the file cannot be created
  explicit Claim(std::string path, IfTaken if_taken = IfTaken::kGiveUp);
  ~Claim();
  Claim(const Claim&) = delete;
  Claim& operator=(const Claim&) = delete;

  bool held() const { return descriptor_ >= 0; }

 private:
  std::string path_;
  int descriptor_ = -1;
};

struct SweepPoint {
  std::string criterion;  ///< "none" for the dense network
  double sparsity = 0;
  uint64_t seed = 0;

  bool operator==(const SweepPoint&) const = default;
};

/// Returns all combinations, and the dense network once per seed; ordered by seed.
std::vector<SweepPoint> points_of(const Recipe& recipe);

/// Returns the recipe of one point.
Recipe at_point(const Recipe& recipe, const SweepPoint& point);

struct SweepOptions {
  TrainingRunOptions run;
  std::string folder;  ///< of the ledger; also models/, and checkpoints while needed
  Shard shard;
  LedgerOrigin origin;
  /// Measures the file of every point; may be empty.
  std::function<std::vector<LedgerPoint::Metric>(const std::string& model)> measure = {};
};

/// Trains every point missing in the folder's ledger. Several processes may work on one folder:
/// each point is claimed by a file lock, which the system releases when its owner dies. An
/// interrupted point is resumed from its last epoch; points of a seed share their warm-up, which is
/// kept in checkpoints/ for points that are added later.
/// @returns the number of points that are still missing because other processes are working on them
/// @throws IoError, and errors of training
int sweep(const std::function<std::unique_ptr<TrainableModel>()>& make, const Dataset& data,
          const Recipe& recipe, const SweepOptions& options);

}  // namespace parsimony::training
