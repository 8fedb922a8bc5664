// Conv(x, w, b) -> BatchNormalization(gamma, beta, mean, var):
//   Conv(x, w · s, (b - mean) · s + beta) with s = gamma / sqrt(var + epsilon), per output channel
#pragma once

#include "parsimony/onnx_io/export/target_impl.h"

namespace parsimony::onnx_io {

/// Joins them where nothing else reads the convolution's result or its weights, in float32. The
/// weight keeps its name; a bias that was not there is named after the normalisation's.
void fold_batchnorm(Target& target);

}  // namespace parsimony::onnx_io
