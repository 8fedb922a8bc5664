// Numbers that encode a size, for people and for programs.
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
  std::vector<std::string> groups;  ///< that shorten the axis

  /// What pruning made of the axis.
  struct Cut {
    int64_t kept = 0;
    double would_be = 0;   ///< the value for what is kept
    bool patched = false;  ///< it has this value; else the old one
  };
  std::optional<Cut> cut;
};

ScaleRow row_of(const Graph& graph, const Coupling& coupling, const Scale& scale);
ScaleRow row_of(const Graph& graph, const Coupling& coupling, const CutScale& cut, bool patched);

}  // namespace parsimony
