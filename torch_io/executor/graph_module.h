// A network read from a file, as a module of libtorch: it runs, and it can be trained.
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
  bool trainable = true;  ///< parameters ask for gradients
  /// Weights that each node reads anew from the file behind the graph, whose bytes must stay; the
  /// module does not have them. Networks may then be larger than the memory. Empty: none.
  std::function<bool(const Weight&)> read_anew = {};
};

/// Runs a Graph on libtorch. The weights are copied, so that the file may go, unless options say
/// so.
///
///     GraphModule net(onnx_io::to_graph(file));
///     at::Tensor y = net->forward(at::rand({1, 3, 32, 32}));
///
/// Floating-point weights are parameters, named as the file names them but for dots, which become
/// underlines. Buffers are: integers, running statistics of BatchNormalization, settings (bounds of
/// Clip, scales of Resize and of quantisation, exponents) and lone numbers in arithmetic, such as
/// the epsilon of a normalisation that is written out.
///
/// The module begins in evaluation mode. In training mode BatchNormalization uses the batch's
/// statistics and moves the running ones by its attribute `momentum`, as ONNX defines it, and
/// Dropout drops.
class GraphModuleImpl : public torch::nn::Module {
 public:
  /// @throws UnsupportedError naming the first node that cannot be run
  explicit GraphModuleImpl(const Graph& graph, const GraphModuleOptions& options = {});
  ~GraphModuleImpl() override;

  /// Nodes that cannot be run: unknown operators, subgraphs but of If, Loop and Scan, operands of
  /// types that libtorch does not have.
  static std::vector<NodeId> unsupported_nodes(const Graph& graph);
  static bool runs(const Graph& graph) { return unsupported_nodes(graph).empty(); }

  /// From the graph's inputs to its outputs, in their order.
  /// @throws ModelError if the inputs do not fit, naming the node that found out
  std::vector<at::Tensor> forward(const std::vector<at::Tensor>& inputs);
  /// Of each of several. Weights that are read anew are read once for all.
  std::vector<std::vector<at::Tensor>> forward_each(
      const std::vector<std::vector<at::Tensor>>& inputs);
  /// One input, the first output.
  at::Tensor forward(const at::Tensor& input);

  /// Converts floating-point tensors only: indices and shapes stay integers.
  void to(at::Device device, at::ScalarType type, bool non_blocking = false) override;
  void to(at::ScalarType type, bool non_blocking = false) override;
  using torch::nn::Module::to;

  /// Parameters and buffers by the name that the file gives the weight. The tensors are those that
  /// the network computes with.
  const std::map<std::string, at::Tensor>& weights() const;

  /// From now on what is computed from halves stays float32 from node to node, Casts to halves
  /// included; weights stay halves. Rounding after each node (5e-4) would hide small faults.
  void widen_halves();

  /// Called with every value that is computed, or none.
  using Observer = std::function<void(const Node&, ValueId, const at::Tensor&)>;
  void observe(Observer observer);

  /// From now on the network computes as if what the plan removes were absent: as the small network
  /// does, but in the original's shapes. Removed elements of weights become zero; divisors and
  /// statistics stay. Operators that mix channels (normalisation, softmax, means, extrema) see only
  /// those that are there. Elements of outputs that are absent are zero.
  /// Of a plan with exact constants the masks become zeros in the weights, and nothing is absent.
  /// @throws ModelError if the plan does not fit; UnsupportedError for folds
  void mask(const Plan& plan);

 private:
  struct State;
  std::unique_ptr<State> state_;
};
TORCH_MODULE(GraphModule);

}  // namespace parsimony
