#include "parsimony/masks/axis_mask.h"

#include <algorithm>

namespace parsimony {

AxisMasks AxisMasks::all_kept(const Coupling& coupling) {
  AxisMasks masks;
  for (const Group& group : coupling.groups) {
    masks.keep.emplace_back(group.size, uint8_t{1});
  }
  return masks;
}

int AxisMasks::kept(GroupId group) const {
  const auto& mask = keep[group];
  return static_cast<int>(std::ranges::count_if(mask, [](uint8_t k) { return k != 0; }));
}

int keep_at_least_one(const Coupling& coupling, const PerGroup<std::vector<double>>& score,
                      AxisMasks& masks) {
  int given_back = 0;
  for (const DimClassId dim_class : coupling.dim_classes()) {
    const std::span<const ChannelId> channels = coupling.channels(dim_class);
    ChannelId best;
    double best_score = 0;
    bool any_kept = channels.empty();
    for (const ChannelId& channel : channels) {
      any_kept = any_kept || masks.keeps(channel);
      if (any_kept) break;
      const bool scored = !score.empty() && !score[channel.group].empty();
      const double s = scored ? score[channel.group][channel.channel] : 0;
      if (best.group == kNone || s > best_score) {
        best = channel;
        best_score = s;
      }
    }
    if (any_kept || best.group == kNone) continue;
    masks.keep[best.group][best.channel] = 1;
    ++given_back;
  }
  return given_back;
}

namespace {

/// How many of `size` indices are removed if the dim class was solved for another size. If all
/// indices are channels, the dimension repeats them (batch times heads) and loses a proportional
/// share; otherwise the other indices account for the change of size.
int64_t removed_of(std::span<const ChannelId> channels, int64_t removed, int64_t size) {
  const auto solved = static_cast<int64_t>(channels.size());
  if (removed == 0 || size == solved || removed * size % solved != 0) return removed;
  const bool all =
      std::ranges::all_of(channels, [](const ChannelId& c) { return c.group != kNone; });
  return all ? removed * size / solved : removed;
}

}  // namespace

ValueShapes predict_shapes(const Facts& facts, const Coupling& coupling, const AxisMasks& masks) {
  IdVector<DimClassId, int64_t> removed(coupling.dim_classes().size());
  for (const DimClassId dim_class : coupling.dim_classes()) {
    const auto channels = coupling.channels(dim_class);
    removed[dim_class] =
        std::ranges::count_if(channels, [&](const ChannelId& c) { return !masks.keeps(c); });
  }
  ValueShapes shapes = facts.shapes;
  for (const ValueId v : shapes.ids()) {
    if (!shapes[v]) continue;
    for (size_t d = 0; d < shapes[v]->size(); ++d) {
      const DimClassId dim_class = coupling.dim_class_of(v, static_cast<int>(d));
      if (dim_class == kNone) continue;
      int64_t& size = (*shapes[v])[d];
      size -= removed_of(coupling.channels(dim_class), removed[dim_class], size);
    }
  }
  return shapes;
}

std::vector<int64_t> kept_indices(const Member& member, const std::vector<uint8_t>& keep) {
  std::vector<bool> stays(member.size, true);
  for (size_t channel = 0; channel < keep.size(); ++channel) {
    if (keep[channel] != 0) continue;
    for (const int64_t i : member.of(static_cast<int>(channel))) stays[i] = false;
  }
  std::vector<int64_t> kept;
  for (int64_t i = 0; i < member.size; ++i) {
    if (stays[i]) kept.push_back(i);
  }
  return kept;
}

std::vector<int64_t> kept_indices(const Coupling& coupling, const AxisMasks& masks,
                                  DimClassId dim_class) {
  const auto channels = coupling.channels(dim_class);
  std::vector<int64_t> kept;
  for (size_t i = 0; i < channels.size(); ++i) {
    if (masks.keeps(channels[i])) kept.push_back(static_cast<int64_t>(i));
  }
  if (kept.size() == channels.size()) kept.clear();
  return kept;
}

}  // namespace parsimony
