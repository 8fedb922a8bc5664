// New values of a tensor: what stays of it, or itself with zeros.
#pragma once

#include <ATen/core/Tensor.h>

#include <span>
#include <string>

#include "parsimony/graph/model_editor.h"

namespace parsimony::torch_io {

/// A new tensor of the kept indices, with the device, type and memory format of `tensor`.
/// @throws ModelError, naming `name`, if an axis is not there or has another size
at::Tensor cut(const std::string& name, const at::Tensor& tensor, std::span<const AxisKeep> axes);

/// A copy whose `count` elements of smallest magnitude are zero; ties fall to the lower index.
/// @throws ModelError if the tensor has fewer elements
at::Tensor with_zeros(const std::string& name, const at::Tensor& tensor, int64_t count);

}  // namespace parsimony::torch_io
