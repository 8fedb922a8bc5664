// The masked original, and how far a small network is from it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "parsimony/engines/engine.h"
#include "parsimony/graph/infer.h"
#include "parsimony/speedup/plan.h"
#include "parsimony/speedup/proof.h"

namespace parsimony {

/// Does a group of the plan pass an operator that mixes channels?
bool mixes(const Plan& plan);

/// Are zeros in the original's tensors all that the masked original is? Not where a group mixes,
/// nor where the plan changes more than tensors.
bool zeros_suffice(const Plan& plan);

/// max|a - b| / max|a|. Infinities that are the same do not differ; NaN, other shapes and tensors
/// without elements where the other has some always do: they would agree with every fault.
double difference_of(const TensorBytes& a, const TensorBytes& b);

/// Holds what the masked original answers to random inputs.
class Reference {
 public:
  /// Runs `masked` on random inputs for `graph`. `mixes`: see Proof.
  /// @throws UnsupportedError if it does not run on them
  Reference(const Graph& graph, const Probe& probe, bool mixes, Network& masked,
            const ProofOptions& options);

  /// By the tolerance alone, without the original's own rounding. Where the outputs differ and the
  /// original chose among numbers, the small network runs again and chooses from the original's,
  /// and what it would have chosen from is compared like an output: see ChoiceRecord.
  Proof compare(Network& small) const;

  /// Measures the original's own rounding at the outputs that differ by more than the tolerance,
  /// and allows for it. Runs the original again.
  void allow_for_rounding(Proof& proof, Network& masked) const;

 private:
  Proof compare_outputs(const std::vector<TensorList>& found) const;
  /// With the original's choices in place of its own; nothing if it differs even so.
  std::optional<Proof> compare_choosing_alike(Network& small) const;
  double difference(size_t output, const std::vector<TensorList>& found) const;
  double rounding(size_t output, const std::vector<TensorList>& otherwise) const;
  bool hardly_moves(size_t output) const;

  ProofOptions options_;
  bool mixes_;
  std::vector<std::string> names_;
  std::vector<TensorList> inputs_;
  std::vector<TensorList> outputs_;  ///< of each
  ChoiceRecord choices_;
};

/// Would the small network that `plan` makes differ? All on the graph: no file or module is edited.
bool differs(const Graph& original, const Plan& plan, const Probe& probe,
             const ProofOptions& options, Engine& engine);

}  // namespace parsimony
