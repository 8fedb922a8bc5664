// Compares a small network with the masked original.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "parsimony/engines/engine.h"
#include "parsimony/engines/network.h"
#include "parsimony/engines/random_inputs.h"
#include "parsimony/graph/graph.h"
#include "parsimony/graph/infer.h"
#include "parsimony/graph/slice.h"
#include "parsimony/speedup/plan.h"
#include "parsimony/speedup/proof.h"

namespace parsimony {

/// Maps the inputs and outputs of the masked original to those of the small network, where a plan
/// cuts inputs or outputs of the network, or outputs are fed back.
class InputSlicer {
 public:
  /// @throws ModelError if the plan's inputs and outputs are not those of the graph
  InputSlicer(const Graph& graph, const Plan& plan);

  bool has_states() const { return !states_.empty(); }

  /// Replaces the states among `inputs` by the outputs of the run before. Of an output that is
  /// longer, as of a cache that grows, the end.
  void feed_back(const TensorList& outputs, TensorList& inputs) const;

  /// Sets to zero what the small network's inputs lack.
  void mask(TensorList& inputs) const;

  /// Returns the part of the original's inputs or outputs that remains in the small network.
  TensorList small_inputs(TensorList inputs) const { return cut(std::move(inputs), inputs_); }
  TensorList small_outputs(TensorList outputs) const { return cut(std::move(outputs), outputs_); }

 private:
  using Cuts = std::vector<std::vector<AxisKeep>>;  // per input or output

  static TensorList cut(TensorList tensors, const Cuts& cuts);

  Cuts inputs_;
  Cuts outputs_;
  std::vector<std::pair<size_t, size_t>> states_;  // numbers of output and input
};

/// Does a group of the plan pass an operator that mixes channels?
bool mixes(const Plan& plan);

/// Is the masked original just the original with zeros in its tensors? Not if a group mixes, or if
/// the plan changes more than tensors.
bool zeros_suffice(const Plan& plan);

/// max|a - b| / max|a|. Equal infinities count as equal; NaN, different shapes and a tensor without
/// elements against one with some always differ.
double difference_of(const TensorBytes& a, const TensorBytes& b);

/// With the tolerance that float16 needs on an engine that computes in it.
ProofOptions tolerance_for(const Engine& engine, const Graph& graph, ProofOptions options);

/// Why a difference that this engine finds proves nothing; empty if it does: the network chooses
/// among numbers, and the engine does not tell what its nodes choose from.
std::string why_inconclusive(const Engine& engine, const Graph& graph, const Facts& facts);

/// Holds the masked original's outputs on random inputs. Outputs that the plan names as states are
/// fed back, for several steps; the original lacks what the plan cuts of inputs.
class Reference {
 public:
  /// Runs `masked` on random inputs for `graph`, of the first distribution on which its outputs are
  /// numbers; of `sample`, if it is not empty, the first are its arrays, and the others vary them.
  /// @throws UnsupportedError if it runs on none, or gives no numbers on any
  Reference(const Graph& graph, const Probe& probe, const Plan& plan, Network& masked,
            const ProofOptions& options, const TensorList& sample = {});

  /// By the tolerance alone, without the original's own rounding. Where the outputs differ and the
  /// original chose among numbers, the small network runs again and chooses from the original's,
  /// and what it would have chosen from is compared like an output: see ChoiceRecord.
  Proof compare(Network& small) const;

  /// Measures the original's rounding error at the outputs that exceed the tolerance, and allows
  /// for it. Runs the original again.
  void widen_tolerance(Proof& proof, Network& masked) const;

 private:
  using Steps = std::vector<std::vector<TensorList>>;  ///< of each step, for each random input
  enum class Side : uint8_t { kOriginal, kSmall };

  void run(const Graph& graph, const Probe& probe, Network& masked, runtime::Floats floats);
  void run_steps(Network& masked);
  void draw(const Graph& graph, const Probe& probe, const runtime::Draw& draw);
  /// Runs all steps and appends the outputs of each, as the small network has them. Of `choices`
  /// there is one for each step, or none.
  void drive(Network& network, Side side, std::vector<ChoiceRecord>* choices,
             bool alternate_kernels, std::vector<TensorList>& outputs) const;
  /// The name of the first output that has NaN, or nothing but infinities; empty if there is none.
  std::string without_numbers() const;
  Proof compare_outputs(const std::vector<TensorList>& found) const;
  /// With the original's choices; empty if it still differs.
  std::optional<Proof> compare_choosing_alike(Network& small) const;
  double difference(size_t output, const std::vector<TensorList>& found) const;
  double rounding(size_t output, const std::vector<TensorList>& alternates) const;
  bool hardly_moves(size_t output) const;

  ProofOptions options_;
  bool mixes_;
  InputSlicer feed_;
  TensorList sample_;
  runtime::Floats floats_ = {};
  std::vector<std::string> names_;
  Steps inputs_;
  std::string ended_;  ///< why there are fewer steps than expected; empty: there are not
  std::vector<TensorList> outputs_;    ///< step by step, as the small network has them
  std::vector<ChoiceRecord> choices_;  ///< of each step
};

/// Would the small network of `plan` differ? Works on the graph only: no file or module is edited.
bool differs(const Graph& original, const Plan& plan, const Probe& probe,
             const ProofOptions& options, Engine& engine);

}  // namespace parsimony
