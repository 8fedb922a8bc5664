// Files of named tensors in the safetensors layout (JSON header + raw data), so that Python reads
// them too.
//
//   uint64 n (little-endian) | n bytes of JSON, padded with spaces | data
//   {"conv.weight": {"dtype": "F32", "shape": [8, 3, 3, 3], "data_offsets": [0, 864]}, …}
#pragma once

#include <cstddef>
#include <cstdint>
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

/// A tensor as the header names it, of whatever type.
struct TensorEntry {
  std::string name;
  std::string dtype;  ///< "F32"
  Shape dims;
  uint64_t begin = 0;  ///< of its data, in the file
  uint64_t end = 0;
};

struct TensorHeader {
  std::vector<TensorEntry> tensors;  ///< in the header's order
  std::string metadata;              ///< a JSON object; empty if there is none
  uint64_t data = 0;                 ///< where the data begins, in the file
};

/// The header of a file that was read. @throws ModelError if it is not well formed
TensorHeader parse_header(std::string_view bytes, std::string_view file_name);

/// Returns the bytes that precede the data: length and padded header. Data follows in the order of
/// the entries, whose `begin` and `end` count from the start of the data.
std::string header_text(const std::vector<TensorEntry>& tensors, const std::string& metadata);

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
