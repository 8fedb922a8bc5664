// Runs data through a network and collects the statistics that criteria need.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "parsimony/graph/blocks.h"
#include "parsimony/pruners/statistics.h"
#include "parsimony/training/statistics/batches.h"

namespace parsimony::training {

/// Passes over calibration data: one for what needs no gradients (see ForwardStatistics), one for
/// what does, whose sums are in double. The network runs in evaluation mode. Memory depends on the
/// network, not on the number of samples.
class Measuring {
 public:
  /// @param loss  whose gradients criteria need; empty: cross-entropy with the labels or, without
  ///              these, the distance to the network's own outputs
  /// @throws UnsupportedError if the network cannot be run
  Measuring(const Graph& graph, const Facts& facts, const Coupling& coupling, const Needs& needs,
            Loss loss = {});
  ~Measuring();
  Measuring(Measuring&&) noexcept;

  /// How many samples of this kind to add at a time: as many as the network takes, or as suit where
  /// the sample is.
  int64_t batch(const SampleBatch& sample) const;
  /// Adds one batch, of the network's own size if that is fixed.
  /// @throws ModelError if samples or labels do not fit
  void add(const SampleBatch& batch);
  /// The statistics of all added batches.
  Statistics finish() const;
  /// Memory of the sums.
  int64_t bytes() const;

 private:
  class Gradients;
  struct State;
  std::unique_ptr<State> state_;
};

/// Processes all batches. An incomplete batch is dropped if the network's batch is fixed.
///
///     const Dataset data = read_dataset("cifar10:DIR", {.train_samples = 256});
///     PruneServices services;
///     services.measure = measurement(batches_of(data, 256));
///
/// @throws as Measuring; ConfigError if there is no batch
Statistics measure(const Graph& graph, const Facts& facts, const Coupling& coupling,
                   const Needs& needs, const Batches& batches, const Loss& loss = {});

/// See BlockInfluences. @throws as Measuring; ConfigError if there is no batch
std::vector<double> block_influences(const Graph& graph, const std::vector<ResidualBlock>& blocks,
                                     const Batches& batches);

/// The statistics of all ranks' batches, the same at each. @param own  of this rank's
Statistics sum_over(const RankGroup& ranks, Statistics own);

/// For PruneServices. A loss of one's own:
///
///     services.measure = measurement(batches, [](const auto& outputs, const SampleBatch& batch) {
///       return at::l1_loss(outputs[0], batch.targets[0]);
///     });
///
/// @param ranks  that call it together; each runs its share of the batches. Null: there is but one
Measurement measurement(Batches batches, Loss loss = {}, const RankGroup* ranks = nullptr);

}  // namespace parsimony::training
