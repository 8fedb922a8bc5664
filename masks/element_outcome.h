// What happened to the elements of a tensor, for reports.
#pragma once

#include <cstdint>
#include <string>

namespace parsimony {

struct ElementOutcome {
  std::string tensor;
  std::string criterion;  ///< "level", "2:4", "sparsegpt"
  int64_t elements = 0;   ///< remaining in the tensor, zero or not
  int64_t zeroed = 0;     ///< of them, those that the criterion set to zero
  std::string pattern;    ///< "2:4"; empty where none was asked for
  int axis = 0;           ///< the input axis, along which the pattern lies
  /// At most n of every m neighbours of the remaining values are not zero, as counted.
  bool pattern_holds = false;

  bool operator==(const ElementOutcome&) const = default;
};

}  // namespace parsimony
