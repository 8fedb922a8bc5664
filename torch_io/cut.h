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

/// A new tensor with the kept indices, of the device, type and memory format of `tensor`.
/// @throws ModelError, naming `name`, if an axis does not exist or has another size
at::Tensor cut(const std::string& name, const at::Tensor& tensor, std::span<const AxisKeep> axes);

/// The same in the memory of `tensor`, whose values are lost, if it is contiguous; else a new
/// tensor. @throws as `cut` does
at::Tensor cut_in_place(const std::string& name, const at::Tensor& tensor,
                        std::span<const AxisKeep> axes);

/// A copy with the `count` elements of smallest magnitude set to zero; ties go to the lower index.
/// @throws ModelError if the tensor has fewer elements
at::Tensor with_zeros(const std::string& name, const at::Tensor& tensor, int64_t count);

/// A tensor of the same type and shape with new elements. @throws ModelError if their size differs
at::Tensor with_values(const std::string& name, const at::Tensor& tensor,
                       std::span<const std::byte> values);

/// Gives the tensor its values in the masked original. @throws ModelError if the mask does not fit
void mask_values(const TensorMask& mask, const at::Tensor& tensor);

/// The same for some rows of a tensor that has these dims as a whole.
void mask_rows(const TensorMask& mask, const at::Tensor& tensor, const Shape& dims,
               std::span<const int64_t> rows);

}  // namespace parsimony::torch_io
