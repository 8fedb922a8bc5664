// BatchNorms for the time of training, where an exporter has folded them into the convolutions.
#pragma once

#include <deque>
#include <map>
#include <string>
#include <vector>

#include "parsimony/graph/graph.h"
#include "parsimony/torch_io/executor/graph_module.h"

namespace parsimony::training {

/// Without normalisation deep networks of convolutions stand small learning rates only, and files
/// of ONNX have rarely any: export in evaluation mode folds it away. These give it back.
/// A BatchNormalization begins as the identity; the first batch that is trained on gives it that
/// batch's mean as shift and running mean, and its deviation as scale and running deviation, which
/// leaves the network's answers as they were. `folded` are the convolutions' values that compute
/// the same in evaluation mode without it: W γ / √(σ² + ε) and (b − μ) γ / √(σ² + ε) + β.
/// @source Ioffe and Szegedy 2015, https://arxiv.org/abs/1502.03167
class TrainingNorms {
 public:
  TrainingNorms() = default;

  /// Adds one behind every Conv whose weight [out, …] and bias [out] are float32, trained and its
  /// own, and whose answers no BatchNormalization takes. The graph reads memory of this object.
  explicit TrainingNorms(Graph& graph);

  bool empty() const { return norms_.empty(); }

  /// Gives those that have seen no batch yet the statistics of this one. `x`: the network's input.
  void settle(GraphModuleImpl& net, const at::Tensor& x);

  /// Weights and biases of the convolutions, by name.
  std::map<std::string, at::Tensor> folded(const GraphModuleImpl& net) const;

 private:
  struct Norm {
    std::string weight, bias;                  ///< the convolution's
    std::string scale, shift, mean, variance;  ///< its own, [out]
    ValueId answers;                           ///< what it normalises
  };

  void add(Graph& graph, NodeId convolution);
  ValueId add_vector(Graph& graph, const std::string& name, int64_t size, float value);

  std::vector<Norm> norms_;
  std::deque<std::vector<float>> values_;  ///< what the norms begin with
  bool settled_ = false;
};

}  // namespace parsimony::training
