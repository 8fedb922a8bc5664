// Elements of fewer than 8 bits, which share bytes in a file. In memory each has a byte of its own,
// so that a slice of them is one of bytes.
// @source ONNX, "4 bit integer types": the first element lies in the lowest bits
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "parsimony/base/types.h"

namespace parsimony::onnx_io {

inline bool is_packed(DType dtype) { return bits_of(dtype) < 8 * size_of(dtype); }

/// What so many elements take in a file.
int64_t file_bytes(DType dtype, int64_t count);

/// One byte per element, with its sign. @param stride distance of the bytes that elements share
std::vector<std::byte> unpacked(const std::byte* data, int64_t stride, DType dtype, int64_t count);

/// The inverse.
std::vector<std::byte> packed(std::span<const std::byte> elements, DType dtype);

}  // namespace parsimony::onnx_io
