// Which channels can only be removed together, and which cannot be removed at all.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "parsimony/graph/graph.h"
#include "parsimony/graph/operators/factor.h"

namespace parsimony {

/// What a weight's slice has to do with its channel. kOut produces it (rows of a weight, its bias,
/// its normalisation), kIn consumes it (the contracted axis), kWith belongs to it but is not zero
/// when the channel is absent (a divisor).
enum class Role : uint8_t { kOut = 1, kIn = 2, kWith = 4 };

std::string_view name_of(Role role);

/// A dimension of a weight in which a group has slices.
struct Member {
  ValueId value = kNone;  ///< the weight as read at one place; its Weight is value.weight
  NodeId node = kNone;    ///< the node that reads it
  int axis = 0;
  Role role = Role::kOut;
  int64_t size = 0;              ///< full length of the axis
  std::vector<int64_t> indices;  ///< of all channels, channel by channel
  std::vector<int32_t> offsets;  ///< channel c owns indices[offsets[c] .. offsets[c+1])

  std::span<const int64_t> of(int channel) const {
    const int32_t first = offsets[channel];
    const int32_t last = offsets[channel + 1];
    return std::span(indices).subspan(first, last - first);
  }
};

/// Channels with the same members. Any one of them can be removed; it goes from every member.
struct Group {
  std::string id;  ///< "g0", in order of first appearance in the graph
  int size = 0;    ///< number of channels
  bool mixes = false;
  std::string mixes_at;     ///< label of the operator that mixes
  std::string granularity;  ///< "channel", "head", "head_dim" or "group"
  bool zero = true;         ///< a channel whose `out` slices are zero is zero wherever it flows
  bool weighted = true;     ///< wherever a channel is summed over, an `in` slice multiplies it
  std::vector<Member> members;
};

/// Why a dimension cannot shrink, or only in part.
struct Obstacle {
  ValueId value = kNone;
  int dim = 0;
  int64_t pinned = 0;       ///< how many of its indices
  NodeId node = kNone;      ///< the node that caused it; kNone: the graph's own ends
  bool structural = false;  ///< the operator's own extent: a kernel, a window
  std::string reason;
};

enum class Granularity : uint8_t { kChannel, kHead, kHeadDim, kGroup };

struct CouplingOptions {
  Granularity granularity = Granularity::kChannel;
  /// Nodes that read weights, and the policy for axes that lie on those weights.
  std::vector<std::pair<NodeId, Granularity>> of_layers;
  std::vector<NodeId> keep_whole;  ///< nodes whose operands may not shrink
  /// Test only: order in which competing axes are chosen, and which are refused. Any is sound.
  unsigned shuffle_seed = 0;
};

/// A line is a class of dimensions that are wholly the same.
using LineId = Id<struct LineTag>;

/// One channel of one group.
struct ChannelId {
  int group = kNone;
  int channel = 0;
  bool operator==(const ChannelId&) const = default;
};

class Coupling {
 public:
  std::vector<Group> groups;
  std::vector<Obstacle> obstacles;  ///< for every weight dimension that keeps pinned indices

  /// kNone for a dimension of size 1.
  LineId line_of(ValueId value, int dim) const;
  IdRange<LineId> lines() const {
    return IdRange<LineId>(line_begin.empty() ? 0 : line_begin.size() - 1);
  }
  /// The channel at each index of a line; group kNone where it may not be removed. Empty where the
  /// whole line may not shrink.
  std::span<const ChannelId> channels(LineId line) const {
    const int64_t begin = line_begin[line];
    return std::span(element_channel).subspan(begin, line_begin[++line] - begin);
  }

  /// Nodes that tie the members of a group together, in graph order.
  std::vector<NodeId> ties(int group) const;

  IdVector<ValueId, Few<LineId>> value_lines;  ///< per value and dimension; empty: no part in it
  IdVector<LineId, int64_t> line_begin;        ///< per line, into element_channel; one past the end
  std::vector<ChannelId> element_channel;
  IdVector<LineId, Few<NodeId>> line_nodes;  ///< per line: the nodes that name it, in graph order
};

/// Solves for the groups of a graph.
Coupling couple(const Graph& graph, const Facts& facts, const CouplingOptions& options = {});

}  // namespace parsimony
