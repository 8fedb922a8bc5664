// Channel masks: what a pruner decides and the speedup removes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "parsimony/masks/coupling.h"

namespace parsimony {

/// Which channels of each group are kept. keep[g] has groups[g].size elements; 1 keeps.
struct AxisMasks {
  PerGroup<std::vector<uint8_t>> keep;

  static AxisMasks all_kept(const Coupling& coupling);
  int kept(GroupId group) const;
  bool keeps(ChannelId channel) const {
    return channel.group == kNone || keep[channel.group][channel.channel] != 0;
  }
};

/// Restores the highest-scoring removed channel (by `score`, one vector per group, or none) of
/// every dimension that would otherwise be empty. Returns how many channels were restored.
int keep_at_least_one(const Coupling& coupling, const PerGroup<std::vector<double>>& score,
                      AxisMasks& masks);

/// Shapes after removal, for every value whose shape is known.
ValueShapes predict_shapes(const Facts& facts, const Coupling& coupling, const AxisMasks& masks);

/// Ascending indices along the member's axis that stay if its group keeps these channels.
std::vector<int64_t> kept_indices(const Member& member, const std::vector<uint8_t>& keep);

/// Ascending kept indices of one dim class; empty if all are kept.
std::vector<int64_t> kept_indices(const Coupling& coupling, const AxisMasks& masks,
                                  DimClassId dim_class);

}  // namespace parsimony
