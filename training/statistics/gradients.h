// Gradient statistics of channels.
#pragma once

#include <ATen/core/Tensor.h>

#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "parsimony/pruners/layers.h"
#include "parsimony/pruners/statistics.h"

namespace parsimony::training {

/// Collects kTaylor, kTaylorSquared and kHessian from the gradients g of the weights w that produce
/// a group's channels (as criterion l1 sums them).
///
///     kTaylor         mean over batches of |Σ g·w|
///     kTaylorSquared  mean over batches of (Σ g·w)²
///     kHessian        Σ ½·h·w² = ½ · mean over samples of Σ (g·w)²
///
/// @source Molchanov 2017 and 2019; LeCun 1989
class WeightGradients {
 public:
  /// `weights` are the network's own, by their names in the graph; untrained ones are skipped, and
  /// a group none of whose weights had a gradient has an empty entry.
  WeightGradients(const Graph& graph, const Coupling& coupling,
                  const std::map<std::string, at::Tensor>& weights, std::set<Measure> requested);

  /// Returns the weights whose gradients are needed.
  const std::vector<at::Tensor>& weights() const { return weights_; }
  /// Returns Σ (g·w)^power per group, [size]; undefined for groups without gradients. @param
  /// gradients  in the order of weights()
  PerGroup<at::Tensor> sums(const std::vector<at::Tensor>& gradients, int power) const;
  /// Adds Σ g·w of a batch's mean loss.
  void add_batch(const PerGroup<at::Tensor>& changes);
  /// Adds Σ (g·w)² of one sample's loss.
  void add_sample(const PerGroup<at::Tensor>& squares);

  void finish(Statistics& statistics) const;
  int64_t bytes() const;

 private:
  struct Part {
    size_t weight;  ///< in weights_
    int axis;
    at::Tensor channels;  ///< per index of the axis; the group's size if it has none
  };
  const std::set<Measure> requested_;
  std::vector<at::Tensor> weights_;
  PerGroup<std::vector<Part>> parts_;  ///< per group
  PerGroup<bool> reached_;             ///< any of its weights had a gradient
  PerGroup<at::Tensor> magnitude_, squares_, hessian_;
  int64_t batches_ = 0;
  int64_t samples_ = 0;
};

/// The network with a multiplication by one before every operand of a site, so that the gate's
/// gradient is that of this operand only.
struct Gated {
  Graph graph;
  std::vector<ValueId> gates;  ///< per site
};
Gated with_gates(const Graph& graph, const std::vector<Site>& sites);

/// Collects kFisher: mean over samples of (Σ a·∂L/∂a)², the sum over all sites of a group and the
/// positions in each.
/// @source Liu et al., Group Fisher Pruning, ICML 2021
class GateGradients {
 public:
  GateGradients(const Coupling& coupling, const std::vector<Site>& sites,
                std::vector<ValueId> gates);

  /// Values of a run of the gated network whose gradients are needed, each with its gate.
  using Seen = std::vector<std::pair<size_t, at::Tensor>>;
  /// Adds a computed value if a gate asks for it.
  void see(ValueId value, const at::Tensor& x, Seen& seen) const;

  /// Σ a·∂L/∂a of every sample, by group: [count, size].
  using Changes = std::map<GroupId, at::Tensor>;
  /// @param gradients  of the sum of the samples' losses, in the order of `seen`; may be undefined
  /// @returns empty if values do not have the samples along their first axis
  std::optional<Changes> changes(const Seen& seen, std::span<const at::Tensor> gradients,
                                 int64_t count) const;
  void add(const Changes& changes, int64_t count);

  void finish(Statistics& statistics) const;
  int64_t bytes() const;

 private:
  struct Gate {
    GroupId group;
    int dim;
    at::Tensor channels;
  };
  std::vector<Gate> gates_;
  std::map<ValueId, std::vector<size_t>> by_value_;
  PerGroup<at::Tensor> squares_;  ///< per group, [size]
  PerGroup<bool> reached_;
  int64_t samples_ = 0;
};

}  // namespace parsimony::training
