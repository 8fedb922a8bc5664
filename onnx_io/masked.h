// The masked original as a file: what engines that read files compare a small model with.
#pragma once

#include "parsimony/onnx_io/model_file.h"
#include "parsimony/speedup/plan.h"

namespace parsimony::onnx_io {

/// Sets to zero what the plan removes: slices but for divisors, single elements, the branches of
/// blocks; with exact constants what the masks remove. Quantised weights become what stands for
/// zero. Copies, numbers that follow a size and new values are as in the small model.
///
/// Right where zero weights make a channel that is not there: not where a group of the plan mixes.
/// @throws ModelError if the plan does not fit; UnsupportedError where zero is another number for
/// each channel, or is computed
void mask(ModelFile& file, const Plan& plan);

}  // namespace parsimony::onnx_io
