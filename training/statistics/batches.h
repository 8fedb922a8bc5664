// Where calibration data come from, one batch after the other.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "parsimony/graph/graph.h"
#include "parsimony/training/data/dataset.h"
#include "parsimony/training/loader/loader.h"

namespace parsimony::training {

/// The next batch; nothing behind the last.
using Feed = std::function<std::optional<Batch>()>;

/// Begins to go through the data from the start, `size` samples at a time; the last batch may be
/// smaller. Each call gives the same batches.
using Batches = std::function<Feed(int64_t size)>;

/// The first `samples` of the training part as the network sees them, in order and unchanged.
/// `data` must outlive it.
Batches batches_of(const Dataset& data, int64_t samples);

/// Samples that a network takes at once, by its first input; 0 where that is open.
int64_t fixed_batch(const Graph& graph);

/// @throws ModelError if samples [n, …] are not what the network's first input declares
void check_dims(const Graph& graph, const at::Tensor& samples);

}  // namespace parsimony::training
