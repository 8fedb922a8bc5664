// The result of running the small model and the masked original on the same inputs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace parsimony {

/// Options for the comparison of the two models.
struct ProofOptions {
  int inputs = 3;  ///< random inputs; float inputs are normally distributed
  uint64_t seed = 1;
  /// For max|a - b| / max|a|, per output. Raised to four times the original's own rounding error,
  /// which is measured by computing the original with all rounded otherwise.
  double tolerance = 1e-4;

  bool operator==(const ProofOptions&) const = default;
};

/// One output, or an operand that a node chooses from; the worst over all inputs.
struct OutputDifference {
  std::string name;
  double difference = 0;  ///< max|a - b| / max|a|; infinite if shapes differ or there is a NaN
  double tolerance = 0;
};

/// @source docs/internals/invariants.md, P2: the small model computes what the original computes
/// without the removed channels
struct Proof {
  int inputs = 0;
  int steps = 1;  ///< from each input, feeding back states
  uint64_t seed = 0;
  /// A group passes an operator that mixes, whose statistics in the original were taken over the
  /// kept channels.
  bool mixes = false;
  std::vector<OutputDifference> outputs;
  /// Operands of nodes that select among numbers, such as TopK and NonMaxSuppression, if the small
  /// network had to be given the original's operands for its outputs to agree: how far its own were
  /// from them. Empty if it selected by itself.
  std::vector<OutputDifference> choices;
  std::vector<std::string> notes;
  std::string not_run;  ///< why there is no proof; empty if there is one
  std::string fault;    ///< why the small network does not run; empty if it does
  std::string engine;   ///< that ran both: "onnxruntime"

  bool ran() const { return not_run.empty(); }
  /// The output or choice closest to, or furthest beyond, its tolerance; null if there is none.
  const OutputDifference* worst() const;
  /// It in words, with the fault.
  std::string worst_text() const;
  bool holds() const;
};

/// "output "prob": difference 3.1e-02, allowed 1.0e-04"
std::string to_text(const OutputDifference& difference);

/// Bisection: of `parts` changes applied in order, the first with which `differs(n)`, n changes
/// applied, is true; `parts` if it never is. Calls `differs` log2(parts) times; `differs(parts)`
/// should be true.
size_t first_guilty(size_t parts, const std::function<bool(size_t n)>& differs);

}  // namespace parsimony
