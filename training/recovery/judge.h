// How close the small network is to the dense one.
#pragma once

#include <optional>

#include "parsimony/graph/graph.h"
#include "parsimony/training/data/dataset.h"
#include "parsimony/training/statistics/batches.h"

namespace parsimony::training {

/// ‖small − dense‖ / ‖dense‖ (Frobenius) of all outputs whose shapes agree and that are
/// floating-point numbers, over all batches; 0 where both are zero.
double output_error(const Graph& dense, const Graph& small, const Batches& batches, int64_t batch);

/// Share of the test part that the first output [n, classes] answers rightly, 0..1; empty if it has
/// another shape.
std::optional<double> accuracy(const Graph& graph, const Dataset& data, int64_t batch);

}  // namespace parsimony::training
