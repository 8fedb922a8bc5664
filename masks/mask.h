// Masks: of channels, what a pruner decides and the speedup removes; of single elements, which zero
// weights in place, so that channels that become zero can be removed. Files of element masks are
// tensors with the names and shapes of the weights, see tensor_file.h.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "parsimony/graph/graph.h"
#include "parsimony/masks/coupling.h"

namespace parsimony {

/// The channels that each group keeps. keep[g] has groups[g].size elements; 1 keeps.
struct AxisMasks {
  PerGroup<std::vector<uint8_t>> keep;

  static AxisMasks all_kept(const Coupling& coupling);
  int kept(GroupId group) const;
  bool keeps(ChannelId channel) const {
    return channel.group == kNone || keep[channel.group][channel.channel] != 0;
  }
};

/// Restores the highest-scoring removed channels (by `score`, one vector per group, or none) of
/// every dimension that would otherwise be empty, or shorter than `Coupling::least`. Returns how
/// many channels were restored.
int keep_enough(const Coupling& coupling, const PerGroup<std::vector<double>>& score,
                AxisMasks& masks);

/// Shapes after removal, for every value whose shape is known.
ValueShapes predict_shapes(const Facts& facts, const Coupling& coupling, const AxisMasks& masks);

/// Ascending indices along the member's axis that stay if its group keeps these channels.
std::vector<int64_t> kept_indices(const Member& member, const std::vector<uint8_t>& keep);

/// Ascending kept indices of one dim class; empty if all are kept.
std::vector<int64_t> kept_indices(const Coupling& coupling, const AxisMasks& masks,
                                  DimClassId dim_class);

/// One mask over a weight tensor; row-major, 1 keeps.
struct ElementMask {
  std::string tensor;
  Shape dims;
  std::vector<uint8_t> keep;

  bool operator==(const ElementMask&) const = default;
};

/// Zeroes the `count` elements of smallest magnitude; ties fall to the lower index.
/// @throws ModelError for a NaN, UnsupportedError for a type that has no magnitude
ElementMask mask_smallest(const Weight& weight, int64_t count);

/// Converts axis masks to masks over the weights they slice, one per tensor with a removed index.
/// Divisors (Role::kWith) are skipped: they may not become zero. A vector that several layers share
/// keeps what any of them keeps.
std::vector<ElementMask> to_element_masks(const Graph& graph, const Coupling& coupling,
                                          const AxisMasks& masks);

struct ElementOutcome {
  std::string tensor;
  std::string criterion;  ///< "level", "2:4", "sparsegpt"
  int64_t elements = 0;   ///< remaining in the tensor, zero or not
  int64_t zeroed = 0;     ///< of them, those that the criterion set to zero
  std::string pattern;    ///< "2:4"; empty where none was asked for
  int axis = 0;           ///< the input axis, along which the pattern lies
  /// At most n of every m neighbours of the remaining values are not zero, as counted.
  bool pattern_holds = false;

  bool operator==(const ElementOutcome&) const = default;
};

/// Writes BOOL tensors named after the weights they mask. Written beside the target, then renamed.
/// @throws IoError if the file cannot be written, ModelError if two masks have one name or a name
/// is not UTF-8
void write_masks(const std::string& path, const std::vector<ElementMask>& masks);

/// Reads tensors of any integer or floating-point type; 0 removes, everything else keeps. The
/// masks are sorted by name.
/// @throws IoError if the file cannot be read, ModelError if it is not well formed,
/// UnsupportedError for other types
std::vector<ElementMask> read_masks(const std::string& path);

/// Reads masks as read_masks does, but from memory; `file_name` is for messages.
std::vector<ElementMask> parse_masks(std::string_view bytes, std::string_view file_name);

}  // namespace parsimony
