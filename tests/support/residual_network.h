// Random networks of residual blocks, as people build them.
#pragma once

#include <onnx/onnx_pb.h>

#include <string>

namespace parsimony::test {

struct ResidualNetwork {
  onnx::ModelProto model;
  int blocks = 0;  ///< that can go
};

/// Of convolutions for even seeds: basic, pre-activation, gated and depthwise blocks, with strides
/// and projections between. Of attention and MLPs behind LayerNormalizations for odd ones.
ResidualNetwork residual_network(unsigned seed);

/// Three basic blocks d1, d2, d3 of width 8 behind a Conv "s", for images [BATCH, 3, side, side]
/// whose `batch` is a number or a name; the layers of block i are ai and ci. `stem` are the
/// attributes of s.
onnx::ModelProto three_blocks(const std::string& batch, int side, const std::string& stem,
                              int classes);

}  // namespace parsimony::test
