// Files of named tensors in the safetensors layout (JSON header + raw data), so that Python reads
// them too.
//
//   uint64 n (little-endian) | n bytes of JSON, padded with spaces | data
//   {"conv.weight": {"dtype": "F32", "shape": [8, 3, 3, 3], "data_offsets": [0, 864]}, …}
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "parsimony/base/types.h"

namespace parsimony {

/// A tensor of a file, or one to write; its elements are little-endian and row-major; it does not
/// own them.
struct FileTensor {
  std::string name;
  DType dtype = DType::kUnknown;
  Shape dims;
  std::span<const std::byte> data = {};
};

/// The file as bytes, its tensors sorted by name.
/// @throws ModelError if two tensors have one name, a name is not UTF-8, the data does not fit the
/// dims, or the type has no elements of a fixed size
std::string tensor_file(std::vector<FileTensor> tensors);

/// The same, written beside the target, then renamed. @throws IoError if that fails
void write_tensors(const std::string& path, std::vector<FileTensor> tensors);

/// The tensors of a file that was read, sorted by name; their data points into `bytes`.
/// @throws ModelError if it is not well formed, UnsupportedError for an unsupported type
std::vector<FileTensor> parse_tensors(std::string_view bytes, std::string_view file_name);

}  // namespace parsimony
