// Searches ratios per group by trying candidates on data.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "parsimony/configs/recipe.h"
#include "parsimony/pruners/annealing.h"
#include "parsimony/training/net/trainable_model.h"

namespace parsimony::training {

/// Simulated annealing over the shares of channels removed from the groups of one cut. Their total
/// is the configuration's; the energy of a candidate is the loss of the pruned network without
/// further training. Candidates that cannot be pruned are never accepted.
class RatioSearch {
 public:
  using LossOf = std::function<double(TrainableModel&)>;

  /// Prunes a copy of `net` once, to find the groups that the configuration prunes. `cut` has
  /// further settings; `services.measure` is for criteria that need data.
  RatioSearch(TrainableModel& net, const at::Tensor& example, const PruneSettings& settings,
              const PruneRequest& cut, const PruneServices& services = {});

  bool done() const { return groups_.empty() || search_.done(); }
  /// Tries one candidate. @returns its loss
  double step(TrainableModel& net, const LossOf& loss);
  /// Returns the configuration with the best shares so far.
  ConfigList best() const { return groups_.empty() ? settings_.config : config(search_.best()); }

  const Annealing::State& state() const { return search_.state(); }
  void take_up(Annealing::State state) { search_.take_up(std::move(state)); }

 private:
  /// A group that the configuration prunes.
  struct Searched {
    std::vector<std::string> layers;  ///< names of their weights
    int size = 0;
    int removed = 0;  ///< number removed by the configuration itself
  };

  std::vector<Searched> find(TrainableModel& net) const;
  /// Prunes without verification, which only the final cut needs.
  PruneResult pruned(TrainableModel& copy, const ConfigList& config) const;
  static Annealing begin(const std::vector<Searched>& groups, const PruneSettings& settings,
                         uint64_t seed);
  ConfigList config(const std::vector<double>& shares) const;

  at::Tensor example_;
  PruneSettings settings_;
  PruneRequest cut_;
  PruneServices services_;
  std::vector<Searched> groups_;
  Annealing search_;
};

/// Converts the state to numbers for a checkpoint.
std::vector<double> to_numbers(const Annealing::State& state);
Annealing::State to_annealing_state(const std::vector<double>& numbers);

/// Rounds `requested` to integers with the same (rounded) sum, by largest remainders.
std::vector<int> rounded_with_sum(const std::vector<double>& requested);

}  // namespace parsimony::training
