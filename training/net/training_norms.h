// BatchNorms during training, for models in which an exporter has folded them into the
// convolutions.
#pragma once

#include <deque>
#include <map>
#include <string>
#include <vector>

#include "parsimony/graph/graph.h"
#include "parsimony/torch_io/executor/graph_module.h"

namespace parsimony::training {

/// Adds normalisation: without it deep convolutional networks tolerate only small learning rates,
/// and ONNX files rarely have it, because export in evaluation mode folds it. A BatchNormalization
/// starts as the identity; the first training batch sets shift and running mean to that batch's
/// mean, and scale and running deviation to its deviation, which does not change the network's
/// outputs. `folded` returns convolution weights that compute the same in evaluation mode without
/// it: W γ / √(σ² + ε) and (b − μ) γ / √(σ² + ε) + β.
/// @source Ioffe and Szegedy 2015, https://arxiv.org/abs/1502.03167
class TrainingNorms {
 public:
  TrainingNorms() = default;

  /// Adds one after every Conv whose weight [out, …] and bias [out] are float32, trainable and not
  /// shared, and whose output is not read by a BatchNormalization. The graph refers to memory of
  /// this object.
  explicit TrainingNorms(Graph& graph);

  bool empty() const { return norms_.empty(); }

  /// Initialises new ones with the statistics of this batch. `x`: the network's input.
  void settle(GraphModuleImpl& net, const at::Tensor& x);

  /// Returns weights and biases of the convolutions, by name.
  std::map<std::string, at::Tensor> folded(const GraphModuleImpl& net) const;

 private:
  struct Norm {
    std::string weight, bias;                  ///< the convolution's
    std::string scale, shift, mean, variance;  ///< its own, [out]
    ValueId predictions;                       ///< the value that it normalises
  };

  void add(Graph& graph, NodeId convolution);
  ValueId add_vector(Graph& graph, const std::string& name, int64_t size, float value);

  std::vector<Norm> norms_;
  std::deque<std::vector<float>> values_;  ///< initial values of the norms
  bool settled_ = false;
};

}  // namespace parsimony::training
