// Between libtorch's tensors and the graph's views of weights.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>

#include "parsimony/graph/graph.h"

namespace parsimony::torch_io {

/// kUnknown for types that the graph does not know: complex, quantised.
DType dtype_of(at::ScalarType type);
/// @throws UnsupportedError where libtorch has none: strings, unsigned integers wider than 8 bits
at::ScalarType scalar_type_of(DType type);

/// Does the tensor show one element in several places, as `expand` makes it? It cannot be written
/// to.
bool shows_elements_twice(const at::Tensor& tensor);

/// Copies the weight's elements to `out`, one after the other. @returns the end of what was written
std::byte* copy_elements(const Weight& weight, std::byte* out);
/// A copy on the CPU, contiguous, of the weight's own type.
at::Tensor to_tensor(const Weight& weight);
/// The same, but halves are float32.
at::Tensor to_floats(const Weight& weight);
/// Of the type that the constant names.
at::Tensor to_tensor(const HostTensor& constant);

/// A view; the tensor must be dense, contiguous and on the CPU, and outlive it.
Weight view_of(const std::string& name, const at::Tensor& tensor);

}  // namespace parsimony::torch_io
