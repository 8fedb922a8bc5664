// Coupling: channels that can only be removed together, or cannot be removed at all.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "parsimony/graph/blocks.h"
#include "parsimony/graph/graph.h"
#include "parsimony/graph/interface.h"

namespace parsimony {

/// The relation of a weight slice to its channel. kOut produces it (rows of a weight, its bias, its
/// normalisation), kIn consumes it (the contracted axis), kWith follows it but is not zero when the
/// channel is removed (a divisor).
enum class Role : uint8_t { kOut = 1, kIn = 2, kWith = 4 };

std::string_view name_of(Role role);

/// A weight dimension that takes part in a group; an "item" of a dependency group in DepGraph.
struct Member {
  ValueId value = kNone;  ///< the weight as read by `node`; its Weight is value.weight
  NodeId node = kNone;    ///< the node that reads it
  int axis = 0;
  Role role = Role::kOut;
  int64_t size = 0;              ///< full length of the axis
  std::vector<int64_t> indices;  ///< of all channels, channel by channel
  std::vector<int32_t> offsets;  ///< channel c owns indices[offsets[c] .. offsets[c+1])
  bool of_layer = true;          ///< the weight is a layer's, not a table, state or constant

  std::span<const int64_t> of(int channel) const {
    const int32_t first = offsets[channel];
    const int32_t last = offsets[channel + 1];
    return std::span(indices).subspan(first, last - first);
  }
};

/// A branch of the network that one channel alone needs.
struct ChannelBranch {
  int channel = 0;
  Branch branch;
  std::vector<Member> weights = {};  ///< matrices of it alone: all their indices are the channel's
};

using GroupId = Id<struct GroupTag>;
template <typename T>
using PerGroup = IdVector<GroupId, T>;

/// Channels with the same members (a dependency group). Any one of them can be removed, from every
/// member at once.
struct Group {
  std::string id;  ///< "g0", in order of first appearance in the graph
  int size = 0;    ///< number of channels
  bool mixes = false;
  std::string mixes_at;  ///< label of the operator that mixes channels
  /// Label of a layer that weighs by position what a softmax over the channels gives: each channel
  /// is an outcome with a meaning of its own. Empty if there is none.
  std::string outcomes_of = {};
  int least = 1;            ///< so many channels stay: as many as are chosen among them
  std::string granularity;  ///< "channel", "head", "head_dim", "group" or "expert"
  bool zero = true;         ///< a channel whose `out` slices are zero stays zero downstream
  bool weighted = true;     ///< every reduction over the channel multiplies it by an `in` slice
  std::vector<Member> members;
  /// What leaves with a channel as a whole: experts that have layers of their own.
  std::vector<ChannelBranch> branches = {};
};

/// The rule that says which groups that mix may be pruned.
enum class Mixing : uint8_t {
  kExact,           ///< none: what is pruned equals the original with zeros in its weights
  kExceptOutcomes,  ///< those whose channels are not outcomes of a softmax
  kAll,
};

bool may_prune(const Group& group, Mixing mixing);

/// Why a dimension cannot shrink, or only partly.
struct Obstacle {
  ValueId value = kNone;
  int dim = 0;
  int64_t pinned = 0;       ///< how many of its indices
  NodeId node = kNone;      ///< the node that caused it; kNone for graph inputs and outputs
  bool structural = false;  ///< inherent to the operator: a kernel, a window
  std::string reason;
};

enum class Granularity : uint8_t { kChannel, kHead, kHeadDim, kGroup, kExpert };

/// "channel", "head", "head_dim", "group" or "expert", as in configurations and plans.
std::string_view name_of(Granularity granularity);

/// Are the channels experts, which only leave where experts are asked for?
bool has_experts(const Group& group);

struct CouplingOptions {
  Granularity granularity = Granularity::kChannel;
  /// Nodes that read weights, and the granularity policy for the axes of those weights.
  std::vector<std::pair<NodeId, Granularity>> of_layers;
  std::vector<NodeId> pinned_nodes;  ///< nodes whose operands may not shrink
  Interface interface;               ///< which inputs and outputs may; by default none
  /// For tests: the order in which competing axes are chosen, and which are rejected. Any choice is
  /// sound.
  unsigned shuffle_seed = 0;
};

/// A dim class is an equivalence class of dimensions whose indices correspond one to one.
using DimClassId = Id<struct DimClassTag>;

/// One channel of one group.
struct ChannelId {
  GroupId group = kNone;
  int channel = 0;
  bool operator==(const ChannelId&) const = default;
};

class Coupling {
 public:
  PerGroup<Group> groups;
  std::vector<Obstacle> obstacles;  ///< for every weight dimension with pinned indices

  /// kNone for a dimension of size 1.
  DimClassId dim_class_of(ValueId value, int dim) const;
  IdRange<DimClassId> dim_classes() const {
    return IdRange<DimClassId>(dim_class_begin.empty() ? 0 : dim_class_begin.size() - 1);
  }
  /// The channel at each index of a dim class; group kNone if it may not be removed. Empty if the
  /// dim class may not shrink at all.
  std::span<const ChannelId> channels(DimClassId dim_class) const {
    const int64_t begin = dim_class_begin[dim_class];
    return std::span(element_channel).subspan(begin, dim_class_begin[++dim_class] - begin);
  }

  /// Nodes that tie the members of a group together, in graph order.
  std::vector<NodeId> ties(GroupId group) const;

  /// Per value and dimension; empty if the value takes no part in coupling.
  IdVector<ValueId, Few<DimClassId>> value_dim_classes;
  /// Per dim class, into element_channel; one past the end.
  IdVector<DimClassId, int64_t> dim_class_begin;
  std::vector<ChannelId> element_channel;
  /// Per dim class: so many of its indices stay. Empty: 1 of each.
  IdVector<DimClassId, int64_t> least;
  /// Per dim class: the nodes that name it, in graph order.
  IdVector<DimClassId, Few<NodeId>> dim_class_nodes;
};

/// Solves for the groups of a graph.
Coupling couple(const Graph& graph, const Facts& facts, const CouplingOptions& options = {});

}  // namespace parsimony
