// A tensor that is a part of another, cut out along one dimension: x[:, 1:3], x[2].
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

/// Empty if the value is no such part, or its bounds are only known at run time.
std::optional<Part> part_of(Builder& builder, ValueId value);

/// The whole with `piece` in the part's place: Concat(x[:begin], piece, x[end:]).
ValueId replaced(Builder& builder, const Part& part, ValueId piece);

}  // namespace parsimony::torch_io::script
