// What pruning says and does, in a form in which two sources of one network can be compared.
#pragma once

#include <ATen/core/Tensor.h>

#include <map>
#include <set>
#include <string>

#include "parsimony/api/prune.h"

namespace parsimony::test {

using Tensors = std::map<std::string, at::Tensor>;

struct Answer {
  /// "8 channels: conv1.bias[0] out, conv1.weight[0] out, conv2.weight[1] in"; one line each,
  /// sorted. Only tensors of the network: exporters write constants of their own into a file.
  std::string groups;
  Cost dense;
  Cost small;
  /// As `dense.params` and `small.params`, but the exporter's own constants are not counted.
  int64_t dense_weights = 0;
  int64_t small_weights = 0;
  Tensors weights;  ///< of the small network, by name
};

/// All but the small network's weights.
Answer answer_of(const Graph& graph, const Pruning& pruning, const std::set<std::string>& names);

/// Copies of the weights of a graph, by name.
Tensors weights_of(const Graph& graph);

/// Elements of those weights of the graph that count as parameters.
int64_t count_weights(const Graph& graph, const std::set<std::string>& names);

}  // namespace parsimony::test
