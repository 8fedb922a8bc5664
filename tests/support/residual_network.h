// Random networks of residual blocks, as people build them.
#pragma once

#include <onnx/onnx_pb.h>

namespace parsimony::test {

struct ResidualNetwork {
  onnx::ModelProto model;
  int blocks = 0;  ///< that can go
};

/// Of convolutions for even seeds: basic, pre-activation, gated and depthwise blocks, with strides
/// and projections between. Of attention and MLPs behind LayerNormalizations for odd ones.
ResidualNetwork residual_network(unsigned seed);

}  // namespace parsimony::test
