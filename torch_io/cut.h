// Slices, zeroes and replaces values of tensors.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "parsimony/base/types.h"
#include "parsimony/graph/model_editor.h"
#include "parsimony/speedup/masked_values.h"

namespace parsimony::torch_io {

/// Returns a new tensor with the kept indices, with the device, type and memory format of `tensor`.
/// @throws ModelError, naming `name`, if an axis does not exist or has another size
at::Tensor cut(const std::string& name, const at::Tensor& tensor, std::span<const AxisKeep> axes);

/// Like `cut`, but reuses the memory of `tensor`, whose values are lost, if it is contiguous.
/// @throws as `cut` does
at::Tensor cut_in_place(const std::string& name, const at::Tensor& tensor,
                        std::span<const AxisKeep> axes);

/// Returns a copy with the `count` elements of smallest magnitude zeroed; ties go to the lower
/// index.
/// @throws ModelError if the tensor has fewer elements
at::Tensor with_zeros(const std::string& name, const at::Tensor& tensor, int64_t count);

/// Returns a tensor of the same type and shape with new elements. @throws ModelError if sizes
/// differ
at::Tensor with_values(const std::string& name, const at::Tensor& tensor,
                       std::span<const std::byte> values);

/// Sets the tensor to its values in the masked original. @throws ModelError if the mask does not
/// fit
void mask_values(const TensorMask& mask, const at::Tensor& tensor);

/// Like mask_values, for some rows of a tensor whose full shape is `dims`.
void mask_rows(const TensorMask& mask, const at::Tensor& tensor, const Shape& dims,
               std::span<const int64_t> rows);

}  // namespace parsimony::torch_io
