// Rows that several reports have.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "parsimony/base/types.h"

namespace parsimony {

/// A graph input with the shape for which the costs are counted.
struct InputRow {
  std::string name;
  std::optional<Shape> shape;
  bool assumed = false;  ///< symbolic in the file, and not set by the user
  DType dtype = DType::kUnknown;
  std::optional<Shape> declared = {};  ///< -1: symbolic
};

/// A number that encodes a size.
struct ScaleRow {
  std::string node;  ///< node that reads it
  std::string what;  ///< name of the tensor, or of the attribute
  bool attribute = false;
  double value = 0;                 ///< as the network was trained
  std::string encodes;              ///< "1/sqrt(64)"
  int64_t size = 0;                 ///< of the axis that it encodes
  std::vector<std::string> groups;  ///< whose pruning shortens the axis

  /// The effect of pruning on the axis.
  struct Cut {
    int64_t kept = 0;
    double would_be = 0;   ///< the value for the pruned size
    bool patched = false;  ///< the plan changes it to this value; otherwise it keeps the old one
  };
  std::optional<Cut> cut;
};

}  // namespace parsimony
