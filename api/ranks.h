// Ranks: the place of a process among those that train one network together.
#pragma once

#include <optional>
#include <string>

namespace parsimony {

/// Settings for the cooperation of ranks.
struct RankSettings {
  double timeout = 600;         ///< seconds that a rank waits for the others
  bool local_norms = false;     ///< BatchNorm takes the statistics of each rank's samples
  bool half_gradients = false;  ///< are sent as float16
  bool all_verify = false;      ///< every rank proves its network; otherwise only rank 0

  bool operator==(const RankSettings&) const = default;
};

struct RankPlace {
  int rank = 0;
  int size = 1;
  int local_size = 1;  ///< ranks on this machine, which share its cores; 1 if nothing says it
  /// The rendezvous of the ranks: "tcp:HOST:PORT", at which rank 0 listens, or "file:PATH", in a
  /// folder that all of them see.
  std::string store = {};
  bool store_is_open = false;  ///< the launcher listens at it, in place of rank 0
  RankSettings settings = {};

  bool several() const { return size > 1; }
  /// Returns whether this rank verifies the result.
  bool verifies() const { return rank == 0 || settings.all_verify; }

  bool operator==(const RankPlace&) const = default;
};

/// Reads the launcher's environment variables: torchrun's RANK, WORLD_SIZE and LOCAL_WORLD_SIZE;
/// Open MPI's OMPI_COMM_WORLD_*; PMI_*; SLURM_* of a step. The store is PARSIMONY_STORE, or
/// at MASTER_ADDR and MASTER_PORT; empty if neither is set.
/// @returns nothing without a launcher
/// @throws ConfigError if the numbers contradict each other
std::optional<RankPlace> ranks_of_environment();

}  // namespace parsimony
