// The numbers by which PyTorch's programs name element types.
#pragma once

#include <cstdint>

#include "parsimony/base/types.h"

namespace parsimony::programs {

/// The element type of a c10::ScalarType, as calls of operators name it; kUnknown for complex and
/// quantised types and for numbers that name none.
DType dtype_of_torch(int64_t scalar_type);

/// The c10::ScalarType of an element type; -1 where PyTorch has none.
int64_t torch_type_of(DType type);

}  // namespace parsimony::programs
