#include "parsimony/masks/safetensors.h"

#include "parsimony/base/files.h"
#include "parsimony/graph/elements.h"
#include "parsimony/masks/tensor_file.h"

namespace parsimony {

namespace {

std::vector<FileTensor> tensors_of(const std::vector<ElementMask>& masks) {
  std::vector<FileTensor> tensors;
  tensors.reserve(masks.size());
  for (const ElementMask& mask : masks) {
    tensors.push_back({mask.tensor, DType::kBool, mask.dims, std::as_bytes(std::span(mask.keep))});
  }
  return tensors;
}

/// 1 where an element is not zero.
std::vector<uint8_t> nonzero(const FileTensor& tensor) {
  const int64_t width = size_of(tensor.dtype);
  std::vector<uint8_t> keep(tensor.data.size() / width);
  for (size_t i = 0; i < keep.size(); ++i) {
    keep[i] = is_zero(tensor.data.data() + i * width, width, is_floating(tensor.dtype)) ? 0 : 1;
  }
  return keep;
}

}  // namespace

void write_masks(const std::string& path, const std::vector<ElementMask>& masks) {
  write_tensors(path, tensors_of(masks));
}

std::vector<ElementMask> parse_masks(std::string_view bytes, std::string_view file_name) {
  std::vector<ElementMask> masks;
  for (const FileTensor& tensor : parse_tensors(bytes, file_name)) {
    masks.push_back({tensor.name, tensor.dims, nonzero(tensor)});
  }
  return masks;
}

std::vector<ElementMask> read_masks(const std::string& path) {
  return parse_masks(read_file(path), path);
}

}  // namespace parsimony
