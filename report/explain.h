// Explains why channels are coupled, and why axes cannot be pruned.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "parsimony/masks/coupling.h"
#include "parsimony/report/rows.h"
#include "parsimony/speedup/plan.h"

namespace parsimony {

ScaleRow row_of(const Graph& graph, const Coupling& coupling, const Scale& scale);
ScaleRow row_of(const Graph& graph, const Coupling& coupling, const CutScale& cut, bool patched);

/// The slices of a weight that belong to a group.
struct MemberRow {
  std::string tensor;
  int axis = 0;
  std::string role;     ///< "out", "in" or "with"
  int64_t size = 0;     ///< of the axis
  int64_t indices = 0;  ///< number that belong to the group
  std::string node;     ///< node that reads it
};

struct GroupRow {
  std::string id;
  int size = 0;
  std::string granularity;
  bool mixes = false;
  std::string mixes_at;  ///< the node that mixes
  std::vector<MemberRow> members;
  std::vector<std::string> ties;  ///< nodes that couple the group, "NODE (OPERATOR)"
};

/// An axis of a weight that cannot shrink, or only in part.
struct ObstacleRow {
  std::string tensor;
  int axis = 0;
  int64_t size = 0;
  int64_t pinned = 0;  ///< number of pinned indices
  std::string node;    ///< node that is the reason; empty for the network's inputs and outputs
  std::string reason;
};

struct Explanation {
  std::vector<GroupRow> groups;
  std::vector<ObstacleRow> unpruned_dims;
  std::vector<ScaleRow> scales;  ///< numbers that encode a size which can shrink
  std::string nothing;           ///< why there are no rows, if there are none
};

/// The parts of a network to explain; everything by default.
struct ExplainFilter {
  std::string node;   ///< name of a node, of its first output or of a weight that it reads
  std::string group;  ///< id
  bool all = false;   ///< also extents of kernels, and vectors
};

/// Why a network has no axis of a weight that could shrink or be named as an obstacle; empty if it
/// has one.
std::string why_no_axis(const Graph& graph);

/// @throws ConfigError, with close matches, if the filter matches nothing
Explanation explain(const Graph& graph, const Facts& facts, const Coupling& coupling,
                    const ExplainFilter& filter = {});

/// `all` lists every tie; otherwise long lists are truncated.
std::string to_text(const Explanation& explanation, bool all = false);

/// Returns {"parsimony_explain": 2, "groups": […], "unpruned_dims": […], "scales": […]}, and
/// "nothing" with the reason if there are none.
std::string to_json(const Explanation& explanation);

/// Renders the network as a directed graph for Graphviz. Nodes have the colours of the groups whose
/// channels they produce; grey ones cannot shrink.
std::string to_dot(const Graph& graph, const Facts& facts, const Coupling& coupling);

}  // namespace parsimony
