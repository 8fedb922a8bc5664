// What a network is fed when only its speed, or its agreement with another, matters.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "parsimony/engines/network.h"
#include "parsimony/graph/graph.h"
#include "parsimony/graph/infer.h"
#include "parsimony/graph/input_spec.h"

namespace parsimony::runtime {

/// What integers are drawn below, one after the other, until the network takes them: the first
/// serve bytes and word indices, the last flags.
inline constexpr std::array<int64_t, 3> kIntegerRanges = {256, 127, 2};

struct FeedOptions {
  std::vector<InputSpec> specs = {};  ///< those of --input
  /// Takes the place of the first dimension, where the file leaves that open; a TorchScript file
  /// fixes nothing. Without it, an open one is 1 or what `specs` say.
  std::optional<int64_t> batch = std::nullopt;
  uint64_t seed = 1;
  int64_t below = 256;  ///< integers are drawn from [0, below)
};

/// One tensor per input of the graph: floats normally distributed, integers as `below` says, or 0
/// and 1 where the name speaks of a mask or flag, and the values that `specs` give. Inputs of the
/// same place, type and shape have the same elements in all networks.
/// @throws UnsupportedError if a shape is not known, the file fixes another batch, or for strings
TensorList random_inputs(const Graph& graph, const FeedOptions& options = {});
/// The same in the shapes that inference has for `probe`, with the values that it gives.
TensorList random_inputs(const Graph& graph, const Probe& probe, uint64_t seed,
                         int64_t below = 256);

/// How many samples one run takes: the leading dimension of the first input that has two or more;
/// 1 if none has.
int64_t batch_of(const TensorList& inputs);

}  // namespace parsimony::runtime
