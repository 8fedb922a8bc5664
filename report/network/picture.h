// The data of a network's page: boxes with positions, groups with costs, scores and losses.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "parsimony/masks/cost.h"
#include "parsimony/masks/mask.h"
#include "parsimony/report/inspect.h"
#include "parsimony/report/network/layout.h"

namespace parsimony {

/// The decision of a pruning, planned or already applied.
struct PictureDecision {
  AxisMasks masks;
  PerGroup<std::vector<double>> scores;  ///< per channel; empty for groups that were not ranked
  std::string asked;                     ///< "--ratio 0.5"
  bool done = false;                     ///< whether the network was pruned
};

/// An axis that cannot shrink, or only in part.
struct PictureObstacle {
  std::string axis;  ///< "fc.weight[0]"
  int64_t size = 0;
  int64_t pinned = 0;  ///< of its indices
  std::string reason;  ///< with the node that is the reason
};

/// A node, or an input or output of the network.
struct PictureBox {
  std::string name;
  std::string op;  ///< empty for inputs and outputs
  std::string shape;
  std::string small_shape;  ///< after pruning, if that differs
  Layout::Place place;
  int height = 0;
  bool layer = false;  ///< it has a weight matrix
  std::vector<std::pair<std::string, Shape>> weights;
  int64_t params = 0;
  int64_t macs = 0;
  int64_t memory = 0;           ///< bytes of activations that are alive while it runs
  std::vector<int> groups_in;   ///< positions
  std::vector<int> groups_out;  ///< none: its result cannot shrink
  std::vector<PictureObstacle> obstacles;
  int64_t channels = 0;  ///< of the dimension that can shrink; 0: there is none
  int64_t kept = 0;      ///< of these
  int64_t pinned = 0;    ///< and those that cannot be removed
};

struct PictureLine {
  int from = 0;  ///< boxes
  int to = 0;
  int via = -1;  ///< see Layout
  bool inside = false;
};

struct PictureMember {
  int box = -1;  ///< -1: a node of shape arithmetic
  std::string axis;
  std::string role;
  int64_t indices = 0;
  int64_t size = 0;
};

/// The distribution of the scores of a group's channels.
struct ScoreHistogram {
  static constexpr size_t kBins = 24;
  double least = 0;
  double median = 0;
  double most = 0;
  std::array<int, kBins> kept = {};  ///< channels per bin of equal width
  std::array<int, kBins> removed = {};
};

struct PictureGroup {
  std::string id;
  int size = 0;
  int kept = 0;
  std::string granularity;
  std::string mixes_at;  ///< empty: it does not mix
  std::vector<PictureMember> members;
  std::vector<int> boxes;  ///< that produce its channels, or name one of their dimensions
  Cost channel;            ///< savings by the removal of one channel
  Cost saved;              ///< savings by the decision for this group alone
  std::optional<ScoreHistogram> scores;
};

struct NetworkPicture {
  std::string model;
  std::vector<InputRow> inputs;
  std::vector<std::string> uncounted;  ///< nodes not counted in MACs
  Cost dense;
  std::optional<Cost> small;  ///< under the decision
  std::string asked;
  bool done = false;
  std::vector<PictureBox> boxes;
  std::vector<PictureLine> lines;
  std::vector<LayoutBend> bends;
  std::vector<LayoutLayer> layers;
  std::vector<PictureGroup> groups;
};

/// `facts` and `coupling` belong to `graph`, the decision to `coupling`. Costs are those of the
/// shapes in `facts`.
NetworkPicture picture_of(const Graph& graph, const Facts& facts, const Coupling& coupling,
                          const Probe& probe,
                          const std::optional<PictureDecision>& decision = std::nullopt);

/// Returns compact JSON, without members with default values.
std::string to_json(const NetworkPicture& picture);

}  // namespace parsimony
