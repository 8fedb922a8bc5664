// A number that the user's own forward computes with.
#pragma once

#include <optional>
#include <string>

#include "parsimony/graph/host_tensor.h"

namespace parsimony::torch_io {

/// What a plan changes but an edit of the module cannot reach: `view({n, 512})`. If C++ computes
/// the number, as `x.size(1)` does, it follows by itself; only a run can tell.
struct ForwardConstant {
  std::string node;
  int input = -1;                  ///< operand index; -1 for an attribute
  std::string what;                ///< operand or attribute, as far as known
  std::optional<HostTensor> from;  ///< known if the edit came from a plan
  HostTensor to;

  bool operator==(const ForwardConstant&) const = default;
};

}  // namespace parsimony::torch_io
