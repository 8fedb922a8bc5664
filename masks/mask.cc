#include "parsimony/masks/mask.h"

#include <algorithm>
#include <map>

#include "parsimony/base/files.h"
#include "parsimony/base/ranges.h"
#include "parsimony/graph/elements.h"
#include "parsimony/masks/magnitude.h"
#include "parsimony/masks/tensor_file.h"

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

int keep_enough(const Coupling& coupling, const PerGroup<std::vector<double>>& score,
                AxisMasks& masks) {
  int given_back = 0;
  for (const DimClassId dim_class : coupling.dim_classes()) {
    const std::span<const ChannelId> channels = coupling.channels(dim_class);
    const int64_t least = coupling.least.empty() ? 1 : coupling.least[dim_class];
    for (int64_t kept = 0; kept < least; ++kept) {
      ChannelId best;
      double best_score = 0;
      int64_t now = 0;
      for (const ChannelId& channel : channels) {
        if (masks.keeps(channel)) {
          if (++now == least) break;
          continue;
        }
        const bool scored = !score.empty() && !score[channel.group].empty();
        const double s = scored ? score[channel.group][channel.channel] : 0;
        if (best.group == kNone || s > best_score) {
          best = channel;
          best_score = s;
        }
      }
      if (now >= least || best.group == kNone) break;
      masks.keep[best.group][best.channel] = 1;
      ++given_back;
    }
  }
  return given_back;
}

namespace {

/// Returns how many of `size` indices are removed if the dim class was solved for another size. If
/// all indices are channels, the dimension repeats them (batch times heads) and loses a share in
/// proportion; otherwise the other indices account for the change of size.
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

namespace {

// Per axis of a value: which of its indices are removed. Empty if the axis is not pruned.
using Removed = std::vector<std::vector<uint8_t>>;

void mark(const Graph& graph, const Member& member, const std::vector<uint8_t>& keep,
          std::map<ValueId, Removed>& removed) {
  const Weight& weight = graph.weight_of(member.value);
  Removed& axes = removed[member.value];
  axes.resize(weight.dims.size());
  auto& indices = axes[member.axis];
  indices.resize(member.size);
  for (size_t channel = 0; channel < keep.size(); ++channel) {
    if (keep[channel] != 0) continue;
    for (int64_t i : member.of(static_cast<int>(channel))) indices[i] = 1;
  }
}

// Sets to zero the elements that lie in a removed slice of any axis.
void clear_slices(const Shape& dims, const Removed& removed, std::vector<uint8_t>& keep) {
  int64_t inner = static_cast<int64_t>(keep.size());
  for (size_t axis = 0; axis < removed.size(); ++axis) {
    if (dims[axis] == 0) return;
    const int64_t outer = static_cast<int64_t>(keep.size()) / inner;
    inner /= dims[axis];
    const auto& indices = removed[axis];
    for (size_t i = 0; i < indices.size(); ++i) {
      if (indices[i] == 0) continue;
      for (int64_t o = 0; o < outer; ++o) {
        const int64_t begin = (o * dims[axis] + static_cast<int64_t>(i)) * inner;
        std::fill_n(keep.begin() + begin, inner, uint8_t{0});
      }
    }
  }
}

ElementMask masked(const Weight& weight, const Removed& removed) {
  ElementMask mask{weight.name, weight.dims, {}};
  mask.keep.assign(weight.count(), 1);
  clear_slices(weight.dims, removed, mask.keep);
  return mask;
}

// Keeps what either of two uses of a tensor keeps.
void merge(ElementMask& mask, const ElementMask& other) {
  for (size_t i = 0; i < mask.keep.size(); ++i) mask.keep[i] |= other.keep[i];
}

}  // namespace

ElementMask mask_smallest(const Weight& weight, int64_t count) {
  const size_t size = weight.count();
  ElementMask mask{weight.name, weight.dims, std::vector<uint8_t>(size, 1)};
  if (count <= 0) return mask;
  const Weight* const weights[] = {&weight};
  MagnitudeThreshold threshold = find_threshold(weights, std::min<int64_t>(count, weight.count()));
  visit_magnitude(weight, [&]<typename Source>(Source) {
    for (size_t i = 0; i < size; ++i) {
      const double x = Source::at(weight.data + static_cast<int64_t>(i) * weight.stride);
      const bool goes =
          x < threshold.magnitude || (x == threshold.magnitude && threshold.equal-- > 0);
      mask.keep[i] = goes ? 0 : 1;
    }
  });
  return mask;
}

std::vector<ElementMask> to_element_masks(const Graph& graph, const Coupling& coupling,
                                          const AxisMasks& masks) {
  std::map<ValueId, Removed> removed;
  for (const GroupId g : coupling.groups.ids()) {
    const auto& keep = masks.keep[g];
    if (!contains(keep, 0)) continue;
    for (const Member& member : coupling.groups[g].members) {
      if (member.role != Role::kWith) mark(graph, member, keep, removed);
    }
  }
  // A vector that several layers share is masked only where all of them mask it.
  std::map<WeightId, ElementMask> by_weight;
  for (const auto& [value, axes] : removed) {
    const WeightId id = graph.value(value).weight;
    ElementMask mask = masked(graph.weight(id), axes);
    const auto [position, is_new] = by_weight.try_emplace(id, std::move(mask));
    if (!is_new) merge(position->second, mask);
  }
  for (const ValueId v : graph.values.ids()) {
    const Value& value = graph.values[v];
    const bool is_read = !value.uses.empty() || value.is_output;
    if (is_read && !removed.contains(v)) by_weight.erase(value.weight);
  }
  std::vector<ElementMask> result;
  result.reserve(by_weight.size());
  for (auto& [id, mask] : by_weight) result.push_back(std::move(mask));
  return result;
}

namespace {

std::vector<FileTensor> tensors_of(const std::vector<ElementMask>& masks) {
  std::vector<FileTensor> tensors;
  tensors.reserve(masks.size());
  for (const ElementMask& mask : masks) {
    tensors.push_back({mask.tensor, DType::kBool, mask.dims, std::as_bytes(std::span(mask.keep))});
  }
  return tensors;
}

/// 1 where an element is not zero.
std::vector<uint8_t> nonzero(const FileTensor& tensor) {
  const int64_t width = size_of(tensor.dtype);
  std::vector<uint8_t> keep(tensor.data.size() / width);
  for (size_t i = 0; i < keep.size(); ++i) {
    keep[i] = is_zero(tensor.data.data() + i * width, width, is_floating(tensor.dtype)) ? 0 : 1;
  }
  return keep;
}

}  // namespace

void write_masks(const std::string& path, const std::vector<ElementMask>& masks) {
  write_tensors(path, tensors_of(masks));
}

std::vector<ElementMask> parse_masks(std::string_view bytes, std::string_view file_name) {
  std::vector<ElementMask> masks;
  for (const FileTensor& tensor : parse_tensors(bytes, file_name)) {
    masks.push_back({tensor.name, tensor.dims, nonzero(tensor)});
  }
  return masks;
}

std::vector<ElementMask> read_masks(const std::string& path) {
  return parse_masks(read_file(path), path);
}

}  // namespace parsimony
