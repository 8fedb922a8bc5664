// Operators of the user's own: rules that the analysis follows, and kernels that the proof runs.
#pragma once

#include <string>
#include <vector>

namespace parsimony {

struct OwnOperators {
  /// Files of rules; docs/guide/rules.md describes them.
  std::vector<std::string> rules;
  /// Libraries of custom operators for ONNX Runtime: kernels of what libtorch does not compute.
  std::vector<std::string> libraries;

  bool empty() const { return rules.empty() && libraries.empty(); }
};

/// They apply to every network that is read afterwards in this process, and to the libtorch
/// component. Call it once, before all else; no other thread may analyse or open networks.
///
///     add_own_operators({.rules = {"acme.rules"}, .libraries = {"libacme.so"}});
///     prune_file("model.onnx", "small.onnx", {.ratio = 0.5});
///
/// @throws IoError, ConfigError with line and column for rules; UnsupportedError for libraries
void add_own_operators(const OwnOperators& own);

/// All that were added.
const OwnOperators& own_operators();

}  // namespace parsimony
