// Random networks of layers that are put together as people do: convolutions, residuals,
// concatenations, splits, shuffles, gates, reshapes.
#pragma once

#include <onnx/onnx_pb.h>

#include <cstdint>
#include <vector>

namespace parsimony::test {

/// Each step is read as an operator and its choices; any numbers give a network that runs.
onnx::ModelProto network_of(const std::vector<uint32_t>& steps);

/// The steps that a seed gives: 4 to 14 of them.
onnx::ModelProto random_network(unsigned seed);

}  // namespace parsimony::test
