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

/// A size of a tensor. The first element of a dimension is always there: of x[:, :1] it is 1, and
/// the other sizes are those of x.
Element size_at(Builder& builder, ValueId value, int64_t dim);

/// All of them as one list.
ValueId sizes_of(Builder& builder, ValueId value);

/// The whole with the part replaced: Concat(x[:begin], replacement, x[end:]).
ValueId replaced(Builder& builder, const Part& part, ValueId replacement);

}  // namespace parsimony::torch_io::script
