// Conversions between libtorch tensors and views of weights.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>

#include "parsimony/graph/graph.h"

namespace parsimony::torch_io {

/// Returns kUnknown for unsupported types: complex, quantised.
DType dtype_of(at::ScalarType type);
/// @throws UnsupportedError for types that libtorch does not have: strings, unsigned integers wider
/// than 8 bits
at::ScalarType scalar_type_of(DType type);
/// Returns the type of tensors for such elements: one that has all their values if libtorch does
/// not have the type itself. @throws UnsupportedError for strings and uint64
at::ScalarType stored_as(DType type);

/// Whether the tensor contains elements several times, like a result of `expand`, so that it cannot
/// be written to.
bool shows_elements_twice(const at::Tensor& tensor);

/// Copies the weight's elements contiguously to `out`, as `stored_as`. @returns the end of the copy
std::byte* copy_elements(const Weight& weight, std::byte* out);
/// Returns a contiguous copy on the CPU, `stored_as` the weight's type.
at::Tensor to_tensor(const Weight& weight);
/// Like to_tensor, with float16 converted to float32.
at::Tensor to_floats(const Weight& weight);
/// Returns a tensor that is `stored_as` the constant's type.
at::Tensor to_tensor(const HostTensor& constant);

/// Returns a view; the tensor must be dense, contiguous and on the CPU, and outlive it.
Weight view_of(const std::string& name, const at::Tensor& tensor);

}  // namespace parsimony::torch_io
