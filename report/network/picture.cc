#include "parsimony/report/network/picture.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "parsimony/report/network/drawing_impl.h"
#include "parsimony/report/parts_impl.h"

namespace parsimony {
namespace {

// A layer shows name, operator and shape; the nodes after it are thin lines.
constexpr int kLayerHeight = 50;
constexpr int kStripHeight = 22;

std::vector<int> numbers_of(const std::vector<GroupId>& groups) {
  std::vector<int> numbers;
  for (const GroupId group : groups) numbers.push_back(group.number());
  return numbers;
}

ScoreHistogram histogram_of(std::vector<double> scores, const std::vector<uint8_t>& keep) {
  ScoreHistogram result;
  std::vector<double> sorted;
  for (const double score : scores) {
    if (std::isfinite(score)) sorted.push_back(score);
  }
  if (sorted.empty()) return result;
  std::ranges::sort(sorted);
  result.least = sorted.front();
  result.most = sorted.back();
  result.median = sorted[sorted.size() / 2];
  if (sorted.size() % 2 == 0) result.median = (result.median + sorted[sorted.size() / 2 - 1]) / 2;
  const double width = (result.most - result.least) / ScoreHistogram::kBins;
  for (size_t c = 0; c < scores.size(); ++c) {
    if (!std::isfinite(scores[c])) continue;
    const double at = width > 0 ? (scores[c] - result.least) / width : 0;
    const size_t bin = std::min(static_cast<size_t>(at), ScoreHistogram::kBins - 1);
    ++(keep[c] != 0 ? result.kept : result.removed)[bin];
  }
  return result;
}

class Painter {
 public:
  Painter(const Graph& graph, const Facts& facts, const Coupling& coupling,
          const std::optional<PictureDecision>& decision)
      : graph_(graph),
        facts_(facts),
        coupling_(coupling),
        decision_(decision),
        groups_(coupling),
        drawing_(drawing_of(graph, facts, groups_)),
        cost_(graph, facts, coupling) {
    for (const Obstacle& obstacle : coupling.obstacles) {
      const DimClassId dim_class = coupling.dim_class_of(obstacle.value, obstacle.dim);
      if (dim_class != kNone && !obstacle.structural) obstacle_of_.emplace(dim_class, &obstacle);
      if (!obstacle.structural) obstacles_of_[obstacle.value].push_back(&obstacle);
    }
  }

  NetworkPicture run(const Probe& probe) {
    if (decision_) small_shapes_ = predict_shapes(facts_, coupling_, decision_->masks);
    const Inspection inspection = inspect(graph_, facts_, coupling_, probe);
    picture_.inputs = inspection.inputs;
    picture_.uncounted = inspection.uncounted;
    picture_.dense = cost_.dense();
    if (decision_) {
      picture_.small = cost_.under(decision_->masks);
      picture_.asked = decision_->asked;
      picture_.done = decision_->done;
    }
    std::vector<int> box_of_node(graph_.nodes.size(), -1);
    for (const DrawnBox& drawn : drawing_.boxes) {
      if (drawn.node != kNone) {
        box_of_node[drawn.node.index()] = static_cast<int>(picture_.boxes.size());
        picture_.boxes.push_back(box_of(drawn, inspection.nodes[drawn.node.index()]));
      } else {
        picture_.boxes.push_back(end_of(drawn));
      }
    }
    lay_out_boxes();
    add_groups(box_of_node);
    return std::move(picture_);
  }

 private:
  void add_shapes(ValueId value, PictureBox& box) const {
    if (value == kNone || !facts_.shapes[value]) return;
    box.shape = to_string(*facts_.shapes[value]);
    if (!decision_ || !small_shapes_[value]) return;
    const std::string small = to_string(*small_shapes_[value]);
    if (small != box.shape) box.small_shape = small;
  }

  /// Counts the channels of the first prunable dimension of a value.
  void count_channels(ValueId value, PictureBox& box) const {
    if (value == kNone) return;
    for (const DimClassId dim_class : coupling_.value_dim_classes[value]) {
      if (dim_class == kNone || box.channels > 0) continue;
      const auto channels = coupling_.channels(dim_class);
      int64_t kept = 0;
      int64_t pinned = 0;
      for (const ChannelId& channel : channels) {
        pinned += channel.group == kNone ? 1 : 0;
        kept += !decision_ || decision_->masks.keeps(channel) ? 1 : 0;
      }
      if (pinned == std::ssize(channels)) continue;
      box.channels = std::ssize(channels);
      box.kept = kept;
      box.pinned = pinned;
    }
  }

  PictureBox end_of(const DrawnBox& drawn) const {
    PictureBox box;
    box.name = graph_.value(drawn.value).name;
    box.height = kStripHeight;
    add_shapes(drawn.value, box);
    return box;
  }

  PictureBox box_of(const DrawnBox& drawn, const NodeRow& row) const {
    const Node& node = graph_.node(drawn.node);
    PictureBox box;
    box.name = row.node;
    box.op = row.op;
    add_shapes(drawn.value, box);
    box.weights = row.weights;
    box.layer = std::ranges::any_of(row.weights, [](const auto& weight) {
      return std::ranges::count_if(weight.second, [](int64_t d) { return d > 1; }) > 1;
    });
    box.height = box.layer ? kLayerHeight : kStripHeight;
    box.params = row.params;
    box.macs = row.macs;
    box.memory = row.memory;
    box.groups_in = numbers_of(groups_.of_inputs(graph_, node));
    box.groups_out = numbers_of(drawn.groups);
    count_channels(drawn.value, box);
    add_obstacles(node, drawn.value, box);
    return box;
  }

  PictureObstacle row_for(const Obstacle& obstacle, const std::string& axis) const {
    const Shape& dims = graph_.weight_of(obstacle.value).dims;
    std::string reason = obstacle.reason;
    if (obstacle.node != kNone) reason += " (" + label_of(graph_, graph_.node(obstacle.node)) + ")";
    return {axis, dims[obstacle.dim], obstacle.pinned, std::move(reason)};
  }

  /// Adds the obstacles of the weights that the node reads; without any, and if its result cannot
  /// shrink, those of weights that share a dimension with it.
  void add_obstacles(const Node& node, ValueId result, PictureBox& box) const {
    for (const ValueId v : node.inputs) {
      const auto found = v == kNone ? obstacles_of_.end() : obstacles_of_.find(v);
      if (found == obstacles_of_.end()) continue;
      for (const Obstacle* obstacle : found->second) {
        const std::string& weight = graph_.weight_of(v).name;
        box.obstacles.push_back(
            row_for(*obstacle, weight + "[" + std::to_string(obstacle->dim) + "]"));
      }
    }
    if (!box.obstacles.empty() || !box.groups_out.empty() || result == kNone) return;
    const auto& dim_classes = coupling_.value_dim_classes[result];
    for (size_t d = 0; d < dim_classes.size(); ++d) {
      const auto found = obstacle_of_.find(dim_classes[d]);
      if (dim_classes[d] == kNone || found == obstacle_of_.end()) continue;
      box.obstacles.push_back(row_for(*found->second, "output[" + std::to_string(d) + "]"));
    }
  }

  void lay_out_boxes() {
    LayoutRequest request;
    for (size_t i = 0; i < graph_.inputs.size(); ++i) request.inputs.push_back(static_cast<int>(i));
    for (const PictureBox& box : picture_.boxes) {
      request.heights.push_back(box.height);
      request.joins.push_back(!box.op.empty() && !box.layer);
    }
    for (const DrawnLine& line : drawing_.lines) {
      const bool known = !picture_.lines.empty() && picture_.lines.back().from == line.from &&
                         picture_.lines.back().to == line.to;
      if (known || line.from >= line.to) continue;  // an operand that is read twice
      picture_.lines.push_back({line.from, line.to, -1, line.inside});
      request.lines.emplace_back(line.from, line.to);
    }
    Layout layout = lay_out(request);
    for (size_t b = 0; b < picture_.boxes.size(); ++b) picture_.boxes[b].place = layout.boxes[b];
    for (size_t l = 0; l < picture_.lines.size(); ++l) picture_.lines[l].via = layout.via[l];
    picture_.bends = std::move(layout.bends);
    picture_.layers = std::move(layout.layers);
  }

  void add_groups(const std::vector<int>& box_of_node) {
    const auto ties = groups_.ties();
    PerGroup<std::set<int>> boxes_with(coupling_.groups.size());  // also of several groups: Pad
    for (int b = 0; b < std::ssize(drawing_.boxes); ++b) {
      for (const GroupId g : drawing_.boxes[b].groups) boxes_with[g].insert(b);
    }
    AxisMasks masks = AxisMasks::all_kept(coupling_);
    for (const GroupId g : coupling_.groups.ids()) {
      const Group& group = coupling_.groups[g];
      PictureGroup row;
      row.id = group.id;
      row.size = row.kept = group.size;
      row.granularity = group.granularity;
      if (group.mixes) row.mixes_at = group.mixes_at;
      for (const Member& member : group.members) {
        const Weight& weight = graph_.weight_of(member.value);
        row.members.push_back({box_of_node[member.node.index()],
                               weight.name + "[" + std::to_string(member.axis) + "]",
                               std::string(name_of(member.role)), std::ssize(member.indices),
                               member.size});
      }
      std::set<int> boxes = boxes_with[g];
      for (const NodeId n : ties[g]) boxes.insert(box_of_node[n.index()]);
      boxes.erase(-1);
      row.boxes.assign(boxes.begin(), boxes.end());
      masks.keep[g].back() = 0;
      row.channel = saved_by(masks);
      masks.keep[g].back() = 1;
      if (decision_) decide(g, masks, row);
      picture_.groups.push_back(std::move(row));
    }
  }

  void decide(GroupId g, AxisMasks& masks, PictureGroup& row) const {
    row.kept = decision_->masks.kept(g);
    if (row.kept < row.size) {
      std::vector<uint8_t> all = masks.keep[g];
      std::swap(masks.keep[g], all);
      masks.keep[g] = decision_->masks.keep[g];
      row.saved = saved_by(masks);
      masks.keep[g] = std::move(all);
    }
    if (decision_->scores.has(g) && !decision_->scores[g].empty()) {
      row.scores = histogram_of(decision_->scores[g], decision_->masks.keep[g]);
    }
  }

  Cost saved_by(const AxisMasks& masks) const {
    const Cost left = cost_.under(masks);
    return {picture_.dense.params - left.params, picture_.dense.macs - left.macs};
  }

  const Graph& graph_;
  const Facts& facts_;
  const Coupling& coupling_;
  const std::optional<PictureDecision>& decision_;
  const DimClassGroups groups_;
  const Drawing drawing_;
  const CostModel cost_;
  std::map<DimClassId, const Obstacle*> obstacle_of_;
  std::map<ValueId, std::vector<const Obstacle*>> obstacles_of_;
  ValueShapes small_shapes_;
  NetworkPicture picture_;
};

}  // namespace

NetworkPicture picture_of(const Graph& graph, const Facts& facts, const Coupling& coupling,
                          const Probe& probe, const std::optional<PictureDecision>& decision) {
  return Painter(graph, facts, coupling, decision).run(probe);
}

namespace {

/// An object without default values, as pages of large networks consist of these objects.
class SparseObject {
 public:
  template <typename T>
  SparseObject& operator()(const char* key, const T& value, const T& usual = {}) {
    if (value != usual) object_[key] = value;
    return *this;
  }
  SparseObject& operator()(const char* key, const std::vector<int>& list) {
    if (!list.empty()) object_[key] = list;
    return *this;
  }
  Json taken() { return std::move(object_); }

 private:
  Json object_ = Json::object();
};

Json cost_json(const Cost& cost) { return {cost.params, cost.macs}; }

Json box_json(const PictureBox& box) {
  SparseObject out;
  out("name", box.name)("op", box.op)("shape", box.shape)("small", box.small_shape);
  out("params", box.params)("macs", box.macs)("memory", box.memory);
  out("layer", box.layer)("joined", box.place.joined);
  out("reads", box.groups_in)("makes", box.groups_out)("channels", box.channels);
  out("kept", box.kept, box.channels)("pinned", box.pinned);
  Json object = out.taken();
  object["at"] = {box.place.x, box.place.y, box.height, box.place.layer};
  for (const auto& [name, shape] : box.weights) object["weights"].push_back({name, shape});
  for (const PictureObstacle& each : box.obstacles) {
    object["obstacles"].push_back({each.axis, each.size, each.pinned, each.reason});
  }
  return object;
}

Json group_json(const PictureGroup& group) {
  SparseObject out;
  out("id", group.id)("size", group.size)("kept", group.kept, group.size);
  out("granularity", group.granularity, std::string("channel"))("mixes_at", group.mixes_at);
  out("boxes", group.boxes);
  Json object = out.taken();
  object["channel"] = cost_json(group.channel);
  if (group.kept < group.size) object["saved"] = cost_json(group.saved);
  for (const PictureMember& each : group.members) {
    object["members"].push_back({each.box, each.axis, each.role, each.indices, each.size});
  }
  if (group.scores) {
    const ScoreHistogram& scores = *group.scores;
    object["scores"] = {{"range", {scores.least, scores.median, scores.most}},
                        {"kept", scores.kept},
                        {"gone", scores.removed}};
  }
  return object;
}

}  // namespace

std::string to_json(const NetworkPicture& picture) {
  JsonWriter json;
  json("parsimony_network", 1)("model", picture.model)("inputs", picture.inputs);
  json("uncounted", picture.uncounted)("dense", cost_json(picture.dense));
  if (picture.small) {
    json("small", cost_json(*picture.small))("asked", picture.asked)("done", picture.done);
  }
  Json boxes = Json::array();
  for (const PictureBox& box : picture.boxes) boxes.push_back(box_json(box));
  Json lines = Json::array();
  for (const PictureLine& line : picture.lines) {
    lines.push_back({line.from, line.to, line.via, line.inside ? 1 : 0});
  }
  Json bends = Json::array();
  for (const LayoutBend& bend : picture.bends) {
    bends.push_back({bend.x, bend.layer, bend.box, bend.above});
  }
  Json layers = Json::array();
  for (const LayoutLayer& layer : picture.layers) {
    layers.push_back({layer.top, layer.bottom, layer.passing});
  }
  Json groups = Json::array();
  for (const PictureGroup& group : picture.groups) groups.push_back(group_json(group));
  json("box_width", kBoxWidth)("boxes", boxes)("lines", lines)("bends", bends);
  json("layers", layers)("groups", groups);
  return json.taken().dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace parsimony
