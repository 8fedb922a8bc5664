// Simulated annealing over the shares of channels that groups lose: a search for the layers that
// can spare channels.
#pragma once

#include <cstdint>
#include <vector>

namespace parsimony {

/// One group of the search.
struct AnnealedShare {
  double weight = 1;  ///< its weight in the total: its number of channels
  double most = 1;    ///< the largest share it may lose
};

struct AnnealingOptions {
  int steps = 40;       ///< candidates to try
  uint64_t seed = 0;    ///< draws depend on the seed and the step alone
  double begin = 0.1;   ///< temperature at the first step, as a share of the first energy
  double end = 0.001;   ///< and at the last step
  double stride = 0.3;  ///< longest move at the first step, in shares
};

/// Minimises the energy over shares r with Σ weight·r = ratio · Σ weight. The caller measures the
/// energy; the state can be saved between calls.
///
///     Annealing search(groups, 0.5, {.steps = 40});
///     while (!search.done()) search.score(loss_of(search.candidate()));
///     use(search.best());
///
/// The first candidate assigns the same share to all groups. Each further one moves some of the
/// total from one group to another; a worse one is accepted with probability exp(-ΔE / T), T falls
/// geometrically.
/// @source Kirkpatrick et al., Optimization by Simulated Annealing, Science 1983; for pruning: Liu
/// et al., AutoCompress, AAAI 2020
class Annealing {
 public:
  struct State {
    int step = 0;  ///< candidates evaluated so far
    std::vector<double> current;
    std::vector<double> best;
    double energy = 0;       ///< of `current`
    double best_energy = 0;  ///< of `best`
    double first_energy = 0;
  };

  /// @throws ConfigError if the groups together may not lose that much
  Annealing(std::vector<AnnealedShare> groups, double ratio, const AnnealingOptions& options);

  bool done() const { return state_.step >= options_.steps; }
  /// Returns what to measure next, one share per group.
  std::vector<double> candidate() const;
  /// The energy of `candidate()`; smaller is better, infinite is never accepted.
  void tell(double energy);
  const std::vector<double>& best() const { return state_.best; }

  const State& state() const { return state_; }
  void take_up(State state) { state_ = std::move(state); }

 private:
  std::vector<AnnealedShare> groups_;
  AnnealingOptions options_;
  State state_;
};

}  // namespace parsimony
