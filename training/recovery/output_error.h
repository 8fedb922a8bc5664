// The error of the small network relative to the dense one.
#pragma once

#include <optional>

#include "parsimony/data/dataset.h"
#include "parsimony/graph/graph.h"
#include "parsimony/speedup/small_network.h"
#include "parsimony/training/statistics/batches.h"

namespace parsimony::training {

/// ‖small − dense‖ / ‖dense‖ (Frobenius) over all floating-point outputs, at the indices that both
/// have, and all batches; 0 if both are zero.
double output_error(const Graph& dense, const SmallNetwork& small, const Batches& batches,
                    int64_t batch);

/// Mean loss of a network, whose inputs may have lost channels, over the batches.
double mean_loss(const SmallNetwork& network, const Batches& batches, int64_t batch,
                 const Loss& loss);

/// Accuracy of the first output [n, classes] on the test set, 0..1; empty if it has another shape.
std::optional<double> accuracy(const Graph& graph, const Dataset& data, int64_t batch,
                               c10::Device device = c10::kCPU);

}  // namespace parsimony::training
