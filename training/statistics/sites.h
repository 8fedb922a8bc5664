// The sites at which the channels of a group are read.
#pragma once

#include <cstdint>
#include <vector>

#include "parsimony/masks/coupling.h"

namespace parsimony::training {

/// One operand of one layer.
struct Site {
  GroupId group = kNone;
  NodeId reader = kNone;  ///< kNone: the output of a layer, if no weight consumes the channels
  int input = 0;          ///< of the reader
  ValueId value = kNone;
  int dim = 0;                    ///< of the value, along which the channels lie
  std::vector<int64_t> channels;  ///< at each index along `dim`; group.size for other groups
};

/// The operands of the layers whose matrices consume a group's channels: after normalisation and
/// activation function. A group that no matrix consumes is observed at the layers that produce it.
std::vector<Site> sites_of(const Graph& graph, const Coupling& coupling);

/// The first dimension of the value that has channels of the group; kNone if there is none.
int dim_of_group(const Coupling& coupling, ValueId value, GroupId group);

/// Site::channels along a dimension of the value.
std::vector<int64_t> channels_along(const Coupling& coupling, ValueId value, int dim,
                                    GroupId group);

}  // namespace parsimony::training
