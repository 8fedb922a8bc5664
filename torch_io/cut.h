// New values of a tensor: what stays of it, or itself with zeros.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <span>
#include <string>

#include "parsimony/graph/model_editor.h"
#include "parsimony/speedup/plan.h"

namespace parsimony::torch_io {

/// A new tensor of the kept indices, with the device, type and memory format of `tensor`.
/// @throws ModelError, naming `name`, if an axis is not there or has another size
at::Tensor cut(const std::string& name, const at::Tensor& tensor, std::span<const AxisKeep> axes);

/// The same in the memory of `tensor`, whose values are lost, if its elements lie there one after
/// the other; else a new tensor. @throws as `cut` does
at::Tensor cut_in_place(const std::string& name, const at::Tensor& tensor,
                        std::span<const AxisKeep> axes);

/// A copy whose `count` elements of smallest magnitude are zero; ties fall to the lower index.
/// @throws ModelError if the tensor has fewer elements
at::Tensor with_zeros(const std::string& name, const at::Tensor& tensor, int64_t count);

/// A tensor of the same kind with new elements. @throws ModelError if their bytes are not as many
at::Tensor with_values(const std::string& name, const at::Tensor& tensor,
                       std::span<const std::byte> values);

/// Gives those elements of `tensor` new values, in their order, that are `present`: a mask of its
/// shape, or undefined for all. @throws ModelError if the bytes are not as many
void fill_present(const std::string& name, const at::Tensor& tensor, const at::Tensor& present,
                  std::span<const std::byte> values);

/// Sets what the mask removes to zero. @throws ModelError if it has another shape
void zero_masked(const PlanMask& mask, const at::Tensor& tensor);

}  // namespace parsimony::torch_io
