// Numbers that encode a size, for reports.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "parsimony/speedup/scales.h"

namespace parsimony {

struct ScaleRow {
  std::string node;  ///< that reads it
  std::string what;  ///< name of the tensor, or of the attribute
  bool attribute = false;
  double value = 0;                 ///< as the network was trained
  std::string encodes;              ///< "1/sqrt(64)"
  int64_t size = 0;                 ///< of the axis that it encodes
  std::vector<std::string> groups;  ///< whose pruning shortens the axis

  /// What pruning did to the axis.
  struct Cut {
    int64_t kept = 0;
    double would_be = 0;   ///< the value for what is kept
    bool patched = false;  ///< the plan changes it to this value; otherwise it keeps the old one
  };
  std::optional<Cut> cut;
};

ScaleRow row_of(const Graph& graph, const Coupling& coupling, const Scale& scale);
ScaleRow row_of(const Graph& graph, const Coupling& coupling, const CutScale& cut, bool patched);

}  // namespace parsimony
