// Widths that hardware computes well.
#pragma once

#include "parsimony/graph/graph.h"
#include "parsimony/masks/coupling.h"
#include "parsimony/pruners/settings.h"

namespace parsimony {

/// Of how many channels the target's kernels compute blocks, given the type of the weights that
/// produce the group; less where a channel is several elements of the axis, and halved until the
/// group has two blocks.
///
/// x86: a vector of float32, which is also a block of channels in the layouts of oneDNN and ONNX
/// Runtime. Arm: the columns of XNNPACK's kernels for matrix products. Tensor cores: 16 bytes, 8
/// float16 or 16 int8.
/// @source oneDNN, "Understanding Memory Formats"; onnxruntime, MlasNchwcGetBlockSize; XNNPACK,
/// src/f32-gemm and src/qs8-gemm; NVIDIA, "Matrix Multiplication Background", 2023
int multiple_for(Target target, const Graph& graph, const Group& group);

}  // namespace parsimony
