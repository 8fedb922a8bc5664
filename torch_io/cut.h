// Slices, zeroes and replaces values of tensors.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <span>
#include <string>

#include "parsimony/graph/model_editor.h"
#include "parsimony/speedup/plan.h"

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

/// Assigns new values in order to the elements of `tensor` that are `present`: a mask of its shape,
/// or undefined for all. @throws ModelError if the size differs
void fill_present(const std::string& name, const at::Tensor& tensor, const at::Tensor& present,
                  std::span<const std::byte> values);

/// Zeroes the masked elements. @throws ModelError if the mask has another shape
void zero_masked(const PlanMask& mask, const at::Tensor& tensor);

}  // namespace parsimony::torch_io
