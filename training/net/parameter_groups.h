// The channel groups of a network as slices of its parameters, for penalties and searches.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "parsimony/graph/infer.h"
#include "parsimony/masks/coupling.h"
#include "parsimony/torch_io/optimizer.h"

namespace parsimony::training {

/// The slices of a group's channels along one dimension of a parameter.
struct ParameterSlices {
  std::string name;
  at::Tensor parameter;  ///< the network's own
  int64_t axis = 0;
  Role role = Role::kOut;
  bool scale = false;  ///< γ of a BatchNorm
  at::Tensor index;    ///< [n] int64, along the axis
  at::Tensor channel;  ///< [n] int64: the channel that index[i] belongs to

  /// Adds Σ over each channel's slices of `values`, which have the parameter's shape, to `sums`,
  /// [channels].
  void add_sums(const at::Tensor& values, at::Tensor& sums) const;
  /// Returns one factor per channel, expanded to the parameter; 0 where there is no channel. [n
  /// along the axis]
  at::Tensor along(const at::Tensor& per_channel) const;
};

struct ParameterGroup {
  int64_t channels = 0;
  std::vector<ParameterSlices> slices;
};

/// Returns the groups of the graph that was read from a network, for its parameters of the same
/// names; other tensors, divisors and groups without parameters are skipped.
std::vector<ParameterGroup> parameter_groups(Graph& graph, const std::vector<InputSpec>& inputs,
                                             Granularity granularity,
                                             const std::vector<NamedParameter>& parameters);

}  // namespace parsimony::training
