// Simulated annealing over the shares that groups lose: which layers can spare channels, found by
// trying.
#pragma once

#include <cstdint>
#include <vector>

namespace parsimony {

/// One group, as the search sees it.
struct AnnealedShare {
  double weight = 1;  ///< what it counts in the total: its channels
  double most = 1;    ///< largest share it may lose
};

struct AnnealingOptions {
  int steps = 40;       ///< candidates to try
  uint64_t seed = 0;    ///< draws depend on the seed and the step alone
  double begin = 0.1;   ///< temperature at the first step, as a share of the first energy
  double end = 0.001;   ///< and at the last
  double stride = 0.3;  ///< longest move at the first step, in shares
};

/// Looks for shares r with Σ weight·r = ratio · Σ weight whose energy is least. The caller
/// measures; between the calls the state can be kept in a file.
///
///     Annealing search(groups, 0.5, {.steps = 40});
///     while (!search.done()) search.judge(loss_of(search.candidate()));
///     use(search.best());
///
/// The first candidate is the same share for all. Each further one moves some of the total from one
/// group to another; a worse one is accepted with probability exp(-ΔE / T), T falls geometrically.
/// @source Kirkpatrick et al., Optimization by Simulated Annealing, Science 1983; for pruning: Liu
/// et al., AutoCompress, AAAI 2020
class Annealing {
 public:
  struct State {
    int step = 0;  ///< candidates judged so far
    std::vector<double> current;
    std::vector<double> best;
    double energy = 0;       ///< of `current`
    double best_energy = 0;  ///< of `best`
    double first_energy = 0;
  };

  /// @throws ConfigError if the groups together may not lose so much
  Annealing(std::vector<AnnealedShare> groups, double ratio, const AnnealingOptions& options);

  bool done() const { return state_.step >= options_.steps; }
  /// What is to be measured next, one share per group.
  std::vector<double> candidate() const;
  /// The energy of `candidate()`; smaller is better, infinite is never accepted.
  void judge(double energy);
  const std::vector<double>& best() const { return state_.best; }

  const State& state() const { return state_; }
  void take_up(State state) { state_ = std::move(state); }

 private:
  std::vector<AnnealedShare> groups_;
  AnnealingOptions options_;
  State state_;
};

}  // namespace parsimony
