// What was found when the small model and the masked original ran on the same inputs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace parsimony {

/// How often, on what and how strictly the two models are compared.
struct ProofOptions {
  int inputs = 3;  ///< random inputs; float inputs are normally distributed
  uint64_t seed = 1;
  /// Of max|a - b| / max|a|, per output. Raised to four times the original's own rounding, which is
  /// measured by computing it another way.
  double tolerance = 1e-4;
};

/// One output, or what a node chooses from; the worst of all inputs.
struct OutputDifference {
  std::string name;
  double difference = 0;  ///< max|a - b| / max|a|; infinite where shapes differ or NaN appears
  double tolerance = 0;
};

/// @source docs/internals/invariants.md, P2: what is left computes what the original computes
/// without the removed channels
struct Proof {
  int inputs = 0;
  uint64_t seed = 0;
  /// Statistics of the original were taken over the kept channels: a group passes a mixing
  /// operator.
  bool mixes = false;
  std::vector<OutputDifference> outputs;
  /// Operands of nodes that choose among numbers, such as TopK and NonMaxSuppression, where the
  /// small network had to choose from the original's numbers for its outputs to agree: how far its
  /// own were from them. Empty where it chose by itself.
  std::vector<OutputDifference> choices;
  std::vector<std::string> notes;
  std::string not_run;  ///< why there is no proof; empty if there is one

  bool ran() const { return not_run.empty(); }
  /// The output or choice closest to its tolerance, or furthest beyond; null if there is none.
  const OutputDifference* worst() const;
  bool holds() const;
};

/// "output "prob": difference 3.1e-02, allowed 1.0e-04"
std::string to_text(const OutputDifference& difference);

/// Of `parts` changes made one after the other, the first with which `differs(n)` holds, where n
/// are made; `parts` if it never does. Asks log2(parts) times. `differs(parts)` should hold.
size_t first_guilty(size_t parts, const std::function<bool(size_t n)>& differs);

}  // namespace parsimony
