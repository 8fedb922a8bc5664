// A checkpoint's weights as those of its network.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "parsimony/checkpoints/checkpoint.h"
#include "parsimony/checkpoints/match.h"
#include "parsimony/speedup/plan.h"

namespace parsimony {

/// The elements of a tensor, as numbers of `dtype`; floats are rounded to nearest.
/// @throws UnsupportedError if one is a float and the other is not
std::vector<std::byte> values_as(const Checkpoint& checkpoint, TensorId tensor, DType dtype);

/// The elements of the weight of which the tensor is the main part: as they lie there, or g·v/|v|,
/// w/σ, w·mask. @throws as values_as
std::vector<std::byte> weight_as(const Checkpoint& checkpoint, const Dependents& dependents,
                                 TensorId tensor, DType dtype);

/// Options for reading the statistics of a normalisation that an exporter folded into a layer.
struct TransferOptions {
  /// Added to the variance where the file does not show it: PyTorch's default.
  double epsilon = 1e-5;
};

/// New elements of a graph's weights.
struct TransferredWeights {
  std::vector<TensorUpdate> updates;
  std::vector<std::string> left;  ///< weights that keep theirs, with reasons
  bool assumed_epsilon = false;   ///< normalisations were folded with the options' epsilon
};

/// Reads the weights of `graph` from the first copy that `match` names: as they lie there,
/// transposed, or with the normalisation behind the layer folded into weight and bias.
TransferredWeights transfer(const Graph& graph, const CheckpointMatch& match,
                            const Checkpoint& checkpoint, const TransferOptions& options = {});

}  // namespace parsimony
