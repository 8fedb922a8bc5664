#include "parsimony/report/network/picture.h"
#include "parsimony/report/parts_impl.h"

namespace parsimony {
namespace {

/// Pages of large networks consist of these objects: what is usual is not written.
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
                        {"gone", scores.gone}};
  }
  return object;
}

}  // namespace

std::string to_json(const NetworkPicture& picture) {
  JsonWriter way;
  way("parsimony_network", 1)("model", picture.model)("inputs", picture.inputs);
  way("uncounted", picture.uncounted)("dense", cost_json(picture.dense));
  if (picture.small) {
    way("small", cost_json(*picture.small))("asked", picture.asked)("done", picture.done);
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
  way("box_width", kBoxWidth)("boxes", boxes)("lines", lines)("bends", bends);
  way("layers", layers)("groups", groups);
  return way.taken().dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace parsimony
