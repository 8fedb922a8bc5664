// A model on the bench: its file, its analysis, and what masks make of it.
#pragma once

#include <string>
#include <vector>

#include "parsimony/api/depth.h"
#include "parsimony/api/prune.h"
#include "parsimony/graph/graph.h"
#include "parsimony/masks/mask.h"
#include "parsimony/onnx_io/model_file.h"
#include "parsimony/speedup/plan.h"
#include "tests/support/fixture.h"

namespace parsimony::test {

class Workbench {
 public:
  /// `bytes` is a model file.
  explicit Workbench(std::string bytes, const PruneRequest& request = {});
  /// Coupled in an order of its own.
  Workbench(std::string bytes, const PruneRequest& request, const CouplingOptions& coupling);
  explicit Workbench(const onnx::ModelProto& model, const PruneRequest& request = {});
  explicit Workbench(const Fixture& fixture);

  const std::string& bytes() const { return bytes_; }
  const PruneRequest& request() const { return request_; }
  Graph& graph() { return graph_; }
  const Graph& graph() const { return graph_; }
  const Facts& facts() const { return analysis_.facts; }
  const Probe& probe() const { return analysis_.probe; }
  const Coupling& coupling() const { return analysis_.coupling; }

  Plan plan(const AxisMasks& masks) const;
  /// The file that the plan makes.
  std::string apply(const Plan& plan) const;
  std::string prune(const AxisMasks& masks) const { return apply(plan(masks)); }

 private:
  TemporaryFolder folder_;
  std::string bytes_;
  PruneRequest request_;
  onnx_io::ModelFile file_;
  Graph graph_;
  Analysis analysis_;
};

/// Removes one channel of each group named, as far as every dimension keeps one index.
AxisMasks without(const Coupling& coupling, const std::vector<ChannelId>& channels);

/// Removes about `ratio` of every group at random, as far as every dimension keeps one index.
AxisMasks random_masks(const Coupling& coupling, double ratio, unsigned seed);

/// Half of its `blocks` residual blocks, at least one, and `ratio` of the channels that remain.
DepthPruning plan_random_depth(const Graph& graph, unsigned seed, int blocks, double ratio);

/// Is a channel gone at all?
bool removes(const AxisMasks& masks);

/// What does not fit in a model file: an operator's rule, or libonnx's shape inference where
/// `libonnx`. Empty: everything fits.
std::string misfit(const Graph& graph, const Facts& facts,
                   const std::string& words = "does not fit");
std::string misfit(const std::string& bytes, const PruneRequest& request, bool libonnx);

/// Predicted shapes and parameters against those of the file that was made; empty if they agree.
std::string shape_difference(const Workbench& bench, const AxisMasks& masks,
                             const std::string& small, bool libonnx);

}  // namespace parsimony::test
