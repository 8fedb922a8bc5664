// Which layers can spare channels: ratios per group, found by trying on data.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "parsimony/configs/recipe.h"
#include "parsimony/pruners/annealing.h"
#include "parsimony/training/net/net.h"

namespace parsimony::training {

/// Anneals the shares that the groups of one cut lose. Their total is what the configuration would
/// remove as it stands; a candidate is judged by the loss of the network cut so, not trained
/// further. Candidates that cannot be cut are never accepted.
class RatioSearch {
 public:
  using LossOf = std::function<double(Net&)>;

  /// Cuts a copy of `net` once, to see which groups the configuration touches.
  /// `cut.measure` is for criteria that need data.
  RatioSearch(Net& net, const at::Tensor& example, const PruneSettings& settings,
              const PruneOptions& cut);

  bool done() const { return groups_.empty() || search_.done(); }
  /// Tries one candidate. @returns its loss
  double step(Net& net, const LossOf& loss);
  /// The configuration with the best shares so far.
  ConfigList best() const { return groups_.empty() ? settings_.config : config(search_.best()); }

  const Annealing::State& state() const { return search_.state(); }
  void take_up(Annealing::State state) { search_.take_up(std::move(state)); }

 private:
  /// A group that the configuration prunes.
  struct Searched {
    std::vector<std::string> layers;  ///< by their weights' names
    int size = 0;
    int removed = 0;  ///< by the configuration as it stands
  };

  static std::vector<Searched> find(Net& net, const at::Tensor& example,
                                    const PruneSettings& settings, const PruneOptions& cut);
  static Annealing begin(const std::vector<Searched>& groups, const PruneSettings& settings,
                         uint64_t seed);
  ConfigList config(const std::vector<double>& shares) const;

  at::Tensor example_;
  PruneSettings settings_;
  PruneOptions cut_;
  std::vector<Searched> groups_;
  Annealing search_;
};

/// The state as numbers, for a checkpoint, and back.
std::vector<double> to_numbers(const Annealing::State& state);
Annealing::State to_annealing_state(const std::vector<double>& numbers);

/// Whole numbers near `wanted` with the same sum, rounded; the largest remainders are rounded up.
std::vector<int> rounded_with_sum(const std::vector<double>& wanted);

}  // namespace parsimony::training
