// Mask files: tensors with the names and shapes of the weights, see tensor_file.h.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "parsimony/masks/element_mask.h"

namespace parsimony {

/// Writes BOOL tensors named after the weights they mask. Written beside the target, then renamed.
/// @throws IoError if the file cannot be written, ModelError if two masks have one name or a name
/// is not UTF-8
void write_masks(const std::string& path, const std::vector<ElementMask>& masks);

/// Reads tensors of any integer or floating-point type; 0 removes, everything else keeps. The
/// masks are sorted by name.
/// @throws IoError if the file cannot be read, ModelError if it is not well formed,
/// UnsupportedError for other types
std::vector<ElementMask> read_masks(const std::string& path);

/// The same from memory; `file_name` is for messages.
std::vector<ElementMask> parse_masks(std::string_view bytes, std::string_view file_name);

}  // namespace parsimony
