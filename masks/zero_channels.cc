#include "parsimony/masks/zero_channels.h"

#include <algorithm>
#include <unordered_map>

#include "parsimony/masks/magnitude.h"

namespace parsimony {
namespace {

/// Per index of `axis`: is every element of the slice zero?
std::vector<bool> zero_slices(const Weight& weight, int axis, const ElementMask* mask) {
  const auto size = weight.dims[axis];
  int64_t inner = 1;
  for (size_t d = axis + 1; d < weight.dims.size(); ++d) inner *= weight.dims[d];
  std::vector<bool> zero(size, true);
  const int64_t count = weight.count();
  visit_magnitude(weight, [&]<typename Source>(Source) {
    for (int64_t i = 0; i < count; ++i) {
      const size_t index = (i / inner) % size;
      if (!zero[index] || (mask != nullptr && mask->keep[i] == 0)) continue;
      zero[index] = Source::at(weight.data + i * weight.stride) == 0;
    }
  });
  return zero;
}

class ZeroChannels {
 public:
  ZeroChannels(const Graph& graph, const Coupling& coupling, const std::vector<ElementMask>& zeros)
      : graph_(graph), coupling_(coupling) {
    for (const ElementMask& mask : zeros) masks_.emplace(mask.tensor, &mask);
  }

  int remove(AxisMasks& masks) const {
    int found = 0;
    for (const GroupId g : coupling_.groups.ids()) {
      const Group& group = coupling_.groups[g];
      const auto by_out = group.zero ? zero_channels(group, Role::kOut) : std::vector<bool>{};
      const auto by_in = group.weighted ? zero_channels(group, Role::kIn) : std::vector<bool>{};
      for (size_t c = 0; c < masks.keep[g].size(); ++c) {
        const bool goes = (!by_out.empty() && by_out[c]) || (!by_in.empty() && by_in[c]);
        if (!goes || masks.keep[g][c] == 0) continue;
        masks.keep[g][c] = 0;
        ++found;
      }
    }
    return found;
  }

 private:
  /// Channels all of whose slices of one role are zero; empty if the group has none of it.
  std::vector<bool> zero_channels(const Group& group, Role role) const {
    std::vector<bool> result;
    for (const Member& member : group.members) {
      if (member.role != role) continue;
      if (result.empty()) result.assign(group.size, true);
      const Weight& weight = graph_.weight(graph_.value(member.value).weight);
      const auto it = masks_.find(weight.name);
      const auto zero = zero_slices(weight, member.axis, it == masks_.end() ? nullptr : it->second);
      for (int c = 0; c < group.size; ++c) {
        const auto indices = member.of(c);
        const bool all = std::ranges::all_of(indices, [&](int64_t i) { return zero[i]; });
        result[c] = result[c] && all;
      }
    }
    return result;
  }

  const Graph& graph_;
  const Coupling& coupling_;
  std::unordered_map<std::string, const ElementMask*> masks_;
};

}  // namespace

int remove_zero_channels(const Graph& graph, const Coupling& coupling,
                         const std::vector<ElementMask>& zeros, AxisMasks& masks) {
  const int found = ZeroChannels(graph, coupling, zeros).remove(masks);
  // A dimension needs at least one index, even if it is zero.
  return found - keep_at_least_one(coupling, {}, masks);
}

}  // namespace parsimony
