// Proves that a small network computes what its masked original does, by running both.
#pragma once

#include <ATen/core/Tensor.h>

#include <concepts>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "parsimony/api/model.h"
#include "parsimony/torch_io/executor/choices.h"

namespace parsimony {

struct Tensors {
  std::vector<std::vector<at::Tensor>> runs;
};

}  // namespace parsimony

namespace parsimony::torch_io {

/// Outputs from inputs.
class Computation {
 public:
  using List = std::vector<at::Tensor>;

  /// Of one run.
  template <std::invocable<const List&> Function>
  Computation(Function one)  // NOLINT(google-explicit-constructor): any such function is one
      : each_([one = std::move(one)](const std::vector<List>& inputs) mutable {
          std::vector<List> outputs;
          for (const List& each : inputs) outputs.push_back(one(each));
          return outputs;
        }) {}
  /// Of several runs, where that costs less than one after the other.
  template <std::invocable<const std::vector<List>&> Function>
  Computation(Function each)  // NOLINT(google-explicit-constructor)
      : each_(std::move(each)) {}

  List operator()(const List& inputs) const { return each(std::vector<List>{inputs}).front(); }
  std::vector<List> each(const std::vector<List>& inputs) const { return each_(inputs); }

 private:
  std::function<std::vector<List>(const std::vector<List>&)> each_;
};

/// What a network is fed: shapes as inference has them for `probe`, float elements normally
/// distributed, integers in [0, `below`), those that look like flags in [0, 2). The same seed gives
/// the same inputs.
/// @throws UnsupportedError if the shape or type of an input is not known
std::vector<at::Tensor> random_inputs(const Graph& graph, const Probe& probe, uint64_t seed,
                                      int64_t below = 256);

/// Does a group of the plan pass an operator that mixes channels?
bool mixes(const Plan& plan);

/// Holds the runs of the masked original.
class Reference : public Prover {
 public:
  /// Runs `masked` on random inputs for `graph`. `mixes`: see Proof.
  /// @throws UnsupportedError if it does not run on them
  Reference(const Graph& graph, const Probe& probe, bool mixes, Computation masked,
            const ProofOptions& options);

  Proof prove(Runner& small) override;
  /// By the tolerance alone, without the original's own rounding. Where the outputs differ and the
  /// original chose among numbers, the small network runs again and chooses from the original's,
  /// and what it would have chosen from is compared like an output: see Choices.
  Proof compare(const Computation& small) const;
  /// Measures the original's own rounding at the outputs that differ by more than the tolerance,
  /// and allows for it. Runs the original again.
  void allow_for_rounding(Proof& proof) const;

 private:
  void run_original(const Graph& graph, const Probe& probe, int64_t below);
  Proof compare_outputs(const std::vector<std::vector<at::Tensor>>& found) const;
  /// With the original's choices in place of its own; nothing if it differs even so.
  std::optional<Proof> compare_choosing_alike(const Computation& small) const;
  std::vector<std::vector<at::Tensor>> computed_otherwise() const;
  double difference(size_t output, const std::vector<std::vector<at::Tensor>>& found) const;
  double rounding(size_t output, const std::vector<std::vector<at::Tensor>>& otherwise) const;
  bool hardly_moves(size_t output, double tolerance) const;

  Computation masked_;
  ProofOptions options_;
  bool mixes_;
  std::vector<std::string> names_;
  std::vector<std::vector<at::Tensor>> inputs_;
  std::vector<std::vector<at::Tensor>> outputs_;  ///< of each
  Choices choices_;
};

/// The network with the plan's channels absent, run by our executor. Halves are computed with in
/// float32 and stay so from node to node: networks of halves are held to the tolerance of floats.
/// Weights for which `read_anew` holds are not copied: see GraphModuleOptions.
/// @throws UnsupportedError for what the executor does not run
Computation masked_run(const Graph& original, const Plan& plan,
                       std::function<bool(const Weight&)> read_anew = {});

/// The network as it is, run by our executor; halves and `read_anew` as in
/// `masked_run`. @throws UnsupportedError
Computation plain_run(const Graph& graph, std::function<bool(const Weight&)> read_anew = {});

/// Would the small network that `plan` makes differ? All on the graph: no file or module is edited.
bool differs(const Graph& original, const Plan& plan, const Probe& probe,
             const ProofOptions& options);

}  // namespace parsimony::torch_io
