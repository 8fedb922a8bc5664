// A Graph as a libtorch module that can be run and trained.
#pragma once

#include <torch/nn/module.h>
#include <torch/nn/pimpl.h>

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "parsimony/graph/graph.h"
#include "parsimony/speedup/plan.h"

namespace parsimony {
struct GraphModuleOptions {
  bool trainable = true;  ///< parameters require gradients
  /// Makes constants parameters too, to get gradients with respect to everything that is cut.
  bool constants = false;
  /// Fuses nodes where one kernel can compute them; values in between cannot be observed.
  bool fuses = false;
  /// Selects weights that are streamed from the graph's file for every node instead of being stored
  /// in the module; the file's bytes must stay valid. Networks may then be larger than memory.
  /// Empty: none.
  std::function<bool(const Weight&)> streamed = {};
};

/// Runs a Graph on libtorch. Weights are copied, so that the file may be closed, except streamed
/// ones.
///
///     GraphModule net(onnx_io::to_graph(file));
///     at::Tensor y = net->forward(at::rand({1, 3, 32, 32}));
///
/// Parameters are the weights in trained_weights(), under the file's names with dots replaced by
/// underscores. All others are buffers: integers, constants, running statistics of
/// BatchNormalization, settings (bounds of Clip, scales of Resize and of quantisation, exponents).
///
/// The module starts in evaluation mode. In training mode BatchNormalization uses the batch's
/// statistics and updates the running ones with its attribute `momentum`, as defined by ONNX, and
/// Dropout is active.
class GraphModuleImpl : public torch::nn::Module {
 public:
  /// @throws UnsupportedError naming the first node that cannot be run
  explicit GraphModuleImpl(const Graph& graph, const GraphModuleOptions& options = {});
  ~GraphModuleImpl() override;

  /// Returns the nodes that cannot be run: unknown operators, subgraphs other than those of If,
  /// Loop and Scan, operands of types that libtorch does not support.
  static std::vector<NodeId> unsupported_nodes(const Graph& graph);
  static bool runs(const Graph& graph) { return unsupported_nodes(graph).empty(); }

  /// Computes the outputs from the inputs, both in the graph's order.
  /// @throws ModelError if the inputs do not fit, naming the node at which this was detected
  std::vector<at::Tensor> forward(const std::vector<at::Tensor>& inputs);
  /// Computes the outputs for several inputs. Streamed weights are read once for all of them.
  std::vector<std::vector<at::Tensor>> forward_each(
      const std::vector<std::vector<at::Tensor>>& inputs);
  /// Takes one input and returns the first output.
  at::Tensor forward(const at::Tensor& input);

  /// Converts floating-point tensors only: indices and shapes stay integers.
  void to(at::Device device, at::ScalarType type, bool non_blocking = false) override;
  void to(at::ScalarType type, bool non_blocking = false) override;
  using torch::nn::Module::to;

  /// Returns parameters and buffers, as used, by the weights' names in the file.
  const std::map<std::string, at::Tensor>& weights() const;

  /// Keeps results computed from float16 in float32 between nodes from now on, including Casts to
  /// float16; weights stay float16. Rounding after each node (5e-4) would hide small errors.
  void widen_halves();

  /// Called with every computed value; may be empty.
  using Observer = std::function<void(const Node&, ValueId, const at::Tensor&)>;
  void observe(Observer observer);

  /// Starts masked execution: the network then computes as if the elements that the plan removes
  /// were absent, like the small network but in the original's shapes. Removed elements of weights
  /// become zero, except divisors and statistics. Operators that mix channels (normalisation,
  /// softmax, means, extrema) see only present ones. Absent elements of outputs are zero. With
  /// exact constants the plan's masks become zeros in the weights, and nothing is absent.
  /// @throws ModelError if the plan does not fit; UnsupportedError for folds
  void mask(const Plan& plan);

 private:
  struct State;
  std::unique_ptr<State> state_;
};
TORCH_MODULE(GraphModule);

}  // namespace parsimony
