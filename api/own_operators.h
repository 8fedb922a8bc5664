// Custom operators: rules for the analysis, and kernels for the proof.
#pragma once

#include <string>
#include <vector>

namespace parsimony {

struct OwnOperators {
  /// Files of rules; docs/guide/rules.md describes them.
  std::vector<std::string> rules;
  /// ONNX Runtime libraries with the kernels of custom operators, which libtorch does not have.
  std::vector<std::string> libraries;

  bool empty() const { return rules.empty() && libraries.empty(); }
};

/// Registers custom operators for all networks that this process reads from now on, and for the
/// libtorch component. Call it once, before anything else; no other thread may analyse or open
/// networks meanwhile.
///
///     add_own_operators({.rules = {"acme.rules"}, .libraries = {"libacme.so"}});
///     prune_file("model.onnx", "small.onnx", {.ratio = 0.5});
///
/// @throws IoError, ConfigError with line and column for rules; UnsupportedError for libraries
void add_own_operators(const OwnOperators& own);

/// Returns the registered custom operators.
const OwnOperators& own_operators();

}  // namespace parsimony
