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

  /// Replaces the states among `inputs` by the outputs of the previous run. Of a longer output,
  /// such as a growing cache, the end is used.
  void feed_back(const TensorList& outputs, TensorList& inputs) const;

  /// Replaces numbers of words that leave by those of words that stay.
  void restrict_words(TensorList& inputs) const;

  /// Sets the parts of the inputs that the small network does not have to zero.
  void mask(TensorList& inputs) const;

  /// Returns the part of the original's inputs or outputs that remains in the small network.
  TensorList small_inputs(TensorList inputs) const;
  TensorList small_outputs(TensorList outputs) const { return cut(std::move(outputs), outputs_); }

 private:
  using Cuts = std::vector<std::vector<AxisKeep>>;  // per input or output

  static TensorList cut(TensorList tensors, const Cuts& cuts);

  Cuts inputs_;
  Cuts outputs_;
  std::vector<std::pair<size_t, size_t>> states_;               // numbers of output and input
  std::vector<std::pair<size_t, std::vector<int64_t>>> words_;  // number of input, and what stays
};

/// Returns whether a group of the plan passes through an operator that mixes channels.
bool mixes(const Plan& plan);

/// Returns whether the masked original is the original with zeros in its tensors: not if a group
/// mixes, or if the plan changes more than tensors.
bool zeros_suffice(const Plan& plan);

/// Returns max|a - b| / max|a|. Equal infinities count as equal; NaN, different shapes and a tensor
/// without elements against one with some always differ.
double difference_of(const TensorBytes& a, const TensorBytes& b);

/// Returns the options, with the tolerance for float16 on an engine that computes in it.
ProofOptions tolerance_for(const Engine& engine, const Graph& graph, ProofOptions options);

/// Returns why no two runs of the network can be compared: random numbers from which its outputs
/// come. Empty if there are none.
std::string why_incomparable(const Graph& graph);

/// Returns why a difference found by this engine is inconclusive; empty if it is conclusive. It is
/// inconclusive if the network makes discrete choices and the engine does not report their
/// operands.
std::string why_inconclusive(const Engine& engine, const Graph& graph, const Facts& facts);

/// Stores the masked original's outputs on random inputs. States of the plan are fed back for
/// several steps; the parts of inputs that the plan cuts are zero for the original.
class Reference {
 public:
  /// Runs `masked` on random inputs for `graph`, from the first distribution that yields finite
  /// outputs. If `sample` is not empty, its arrays are the first inputs, and the others are
  /// variations of them.
  /// @throws UnsupportedError if it runs on none, or yields finite outputs on none
  Reference(const Graph& graph, const Probe& probe, const Plan& plan, Network& masked,
            const ProofOptions& options, const TensorList& sample = {});

  /// Compares by the tolerance alone, without the original's own rounding. If the outputs differ
  /// and the network makes discrete choices, the small network runs again with the operands of the
  /// original's choices, and its own operands are compared like outputs: see ChoiceRecord.
  Proof compare(Network& small) const;

  /// Measures the original's rounding error at the outputs that exceed the tolerance, and widens
  /// the tolerance by it. Runs the original again.
  void widen_tolerance(Proof& proof, Network& masked) const;

 private:
  using Steps = std::vector<std::vector<TensorList>>;  ///< of each step, for each random input
  enum class Side : uint8_t {
    kOriginal,
    kRounded,  ///< the original with other kernels; without choices, on inputs rounded otherwise
    kSmall
  };

  void run(const Graph& graph, const Probe& probe, Network& masked, runtime::Floats floats);
  void run_steps(Network& masked);
  void draw(const Graph& graph, const Probe& probe, const runtime::Draw& draw);
  /// Runs all steps and appends the outputs of each, cut to those of the small network. `choices`
  /// has one record per step, or is null.
  void drive(Network& network, Side side, std::vector<ChoiceRecord>* choices,
             std::vector<TensorList>& outputs) const;
  /// Returns the name of the first output with NaN or only infinities; empty if there is none.
  std::string without_numbers() const;
  Proof compare_outputs(const std::vector<TensorList>& found) const;
  /// Compares with the original's choices; empty if it still differs.
  std::optional<Proof> compare_choosing_alike(Network& small) const;
  double difference(size_t output, const std::vector<TensorList>& found) const;
  double rounding(size_t output, const std::vector<TensorList>& rounded) const;
  bool hardly_moves(size_t output) const;

  ProofOptions options_;
  bool mixes_;
  bool smooth_;  ///< makes no discrete choices
  InputSlicer feed_;
  TensorList sample_;
  runtime::Floats floats_ = {};
  std::vector<std::string> names_;
  Steps inputs_;
  std::string ended_;  ///< why there are fewer steps than expected; empty if there are not
  std::vector<TensorList> outputs_;    ///< step by step, as the small network has them
  std::vector<ChoiceRecord> choices_;  ///< of each step
};

/// Returns whether the small network of `plan` differs. Works on the graph alone: no file or module
/// is edited.
bool differs(const Graph& original, const Plan& plan, const Probe& probe,
             const ProofOptions& options, Engine& engine);

}  // namespace parsimony
