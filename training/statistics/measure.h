// Runs data through a network and collects what criteria read of it.
#pragma once

#include <cstdint>
#include <memory>

#include "parsimony/pruners/statistics.h"
#include "parsimony/training/statistics/batches.h"

namespace parsimony::training {

/// A pass over calibration data under way. The network runs in evaluation mode. Sums are kept in
/// double; their memory depends on the network alone, not on the samples.
class Measuring {
 public:
  /// @throws UnsupportedError if the network has several inputs or cannot be run
  Measuring(const Graph& graph, const Facts& facts, const Coupling& coupling, const Needs& needs);
  ~Measuring();
  Measuring(Measuring&&) noexcept;

  /// Samples that the network wants at once.
  int64_t batch() const;
  /// One batch, [batch(), …], or a smaller one where the network's file leaves that open.
  /// @throws ModelError if samples or labels do not fit
  void add(const Batch& batch);
  /// Of what was added.
  Statistics finish() const;
  /// Of the sums.
  int64_t bytes() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// Goes through all batches. A rest that is smaller than what the network takes is left out.
///
///     const Dataset data = read_dataset("cifar10:DIR", {.train_samples = 256});
///     PruneOptions options;
///     options.measure = measurement(batches_of(data, 256));
///
/// @throws as Measuring; ConfigError if there is not a single batch
Statistics measure(const Graph& graph, const Facts& facts, const Coupling& coupling,
                   const Needs& needs, const Batches& batches);

/// What PruneOptions takes.
Measurement measurement(Batches batches);

}  // namespace parsimony::training
