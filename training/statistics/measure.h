// Runs data through a network and collects the statistics that criteria need.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "parsimony/graph/blocks.h"
#include "parsimony/pruners/statistics.h"
#include "parsimony/training/statistics/batches.h"

namespace parsimony::training {

/// Collects statistics over calibration data: in one pass those that need no gradients (see
/// ForwardStatistics), in another those that do, with sums in double. The network runs in
/// evaluation mode. Memory depends on the network, not on the number of samples.
class Measuring {
 public:
  /// @param loss  for criteria that need gradients; empty: cross-entropy with the labels or, if
  ///              there are none, the distance to the network's own outputs
  /// @throws UnsupportedError if the network cannot be run
  Measuring(const Graph& graph, const Facts& facts, const Coupling& coupling, const Needs& needs,
            Loss loss = {});
  ~Measuring();
  Measuring(Measuring&&) noexcept;

  /// Returns how many samples of this kind to add at a time: the network's batch size, or one that
  /// suits the sample's device and fits into memory.
  int64_t batch(const SampleBatch& sample) const;
  /// Adds one batch, of the network's own size if that is fixed.
  /// @throws ModelError if samples or labels do not fit
  void add(const SampleBatch& batch);
  /// Adds batches in order, of which several run at once where no gradients are needed.
  void add(std::span<const SampleBatch> batches);
  /// Returns the statistics of all added batches.
  Statistics finish() const;
  /// Returns the memory of the sums.
  int64_t bytes() const;

 private:
  class Gradients;
  struct State;
  std::unique_ptr<State> state_;
};

/// Measures all batches. An incomplete batch is dropped if the network's batch size is fixed.
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

/// Returns the statistics of all ranks' batches, the same on each. @param own  of this rank, which
/// measured `needs`
Statistics sum_over(const RankGroup& ranks, Statistics own, const Needs& needs);

/// Returns a callback for PruneServices. With a custom loss:
///
///     services.measure = measurement(batches, [](const auto& outputs, const SampleBatch& batch) {
///       return at::l1_loss(outputs[0], batch.targets[0]);
///     });
///
/// @param ranks  that call it together; each runs its share of the batches. Null: one process
Measurement measurement(Batches batches, Loss loss = {}, const RankGroup* ranks = nullptr);

}  // namespace parsimony::training
