// The masked original, tensor by tensor: files, live modules and the executor all take its values
// from here.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "parsimony/base/types.h"
#include "parsimony/speedup/plan.h"

namespace parsimony {

/// The changes that the masked original makes to one tensor, in this order. Refers to the plan.
struct TensorMask {
  std::string_view tensor = {};
  int64_t smallest = 0;  ///< so many elements of smallest magnitude become zero
  std::vector<const PlanSlice*> slices = {};  ///< whose removed parts become zero, except divisors'
  std::span<const std::byte> values = {};     ///< the new ones of what the slices keep; empty: none
  const PlanMask* elements = nullptr;         ///< instead of all that: single elements become zero

  /// False if it only has slices of divisors, which must not become zero.
  bool changes_values() const;
};

/// In order of first mention: with exact constants the plan's masks, else its zeros, slices and new
/// values.
std::vector<TensorMask> tensor_masks(const Plan& plan);

/// A tensor in memory, or some of its rows, which are slices along the first axis.
struct TensorRows {
  DType dtype = DType::kUnknown;
  Shape dims = {};                     ///< of the whole tensor
  std::span<std::byte> values = {};    ///< of the rows, row-major, without gaps
  std::span<const int64_t> rows = {};  ///< which rows; empty: all
};

/// The bytes that represent zero: zero points of quantised numbers.
struct ZeroBytes {
  std::vector<std::byte> points = {std::byte{0}};
  int64_t inner = 1;  ///< consecutive elements that share a point, if there are several
};

/// Replaces the values by those of the masked original. The smallest elements are only found in a
/// whole tensor. @throws ModelError if the mask does not fit
void mask_values(const TensorMask& mask, const TensorRows& tensor, const ZeroBytes& zero = {});

}  // namespace parsimony
