// A tensor that is a slice of another along one dimension: x[:, 1:3], x[2].
#pragma once

#include <optional>

#include "parsimony/torch_io/script/builder_impl.h"

namespace parsimony::torch_io::script {

struct Part {
  ValueId whole = kNone;
  int64_t axis = 0;
  int64_t begin = 0, end = 0;            ///< counted from the left, within the whole
  ValueId starts = kNone, ends = kNone;  ///< the operands that say so; kNone for a single index
};

/// Empty if the value is not such a slice, or its bounds are only known at run time.
std::optional<Part> part_of(Builder& builder, ValueId value);

/// The whole with the part replaced: Concat(x[:begin], replacement, x[end:]).
ValueId replaced(Builder& builder, const Part& part, ValueId replacement);

}  // namespace parsimony::torch_io::script
