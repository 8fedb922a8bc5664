// Mask files: the safetensors layout (JSON header + raw data), so that Python reads them too.
#pragma once

#include <string>
#include <vector>

#include "parsimony/masks/element_mask.h"

namespace parsimony {

/// Writes BOOL tensors named as the weights they mask. Written beside the target, then renamed.
/// @throws IoError
void write_masks(const std::string& path, const std::vector<ElementMask>& masks);

/// Reads BOOL and U8 tensors (1 keeps), and floating-point ones where 0 removes.
/// @throws IoError if the file cannot be read, ModelError if it is not well formed
std::vector<ElementMask> read_masks(const std::string& path);

}  // namespace parsimony
