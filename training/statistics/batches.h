// Sources of calibration batches.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "parsimony/graph/graph.h"
#include "parsimony/training/data/dataset.h"
#include "parsimony/training/loader/loader.h"

namespace parsimony::training {

/// The next batch; empty after the last.
using Feed = std::function<std::optional<Batch>()>;

/// Starts an iteration over the data, `size` samples at a time; the last batch may be smaller. Each
/// call gives the same batches.
using Batches = std::function<Feed(int64_t size)>;

/// The first `samples` of the training set as network inputs, in order and without augmentation.
/// `data` must outlive it.
Batches batches_of(const Dataset& data, int64_t samples);

/// The batch size declared by the network's first input; 0 if symbolic.
int64_t fixed_batch(const Graph& graph);

/// The samples per run of the network: its own batch size, or 32 if that is symbolic.
int64_t calibration_batch(const Graph& graph);

/// Calls `add` with every batch of that size; an incomplete one is dropped if the network's is
/// fixed. @throws ConfigError if there is no batch
void for_each_batch(const Graph& graph, const Batches& batches,
                    const std::function<void(const Batch&)>& add);

/// @throws ModelError if samples [n, …] do not match the network's first input
void check_dims(const Graph& graph, const at::Tensor& samples);

}  // namespace parsimony::training
