#include "parsimony/pruners/level.h"

#include <map>

#include "parsimony/pruners/layers.h"
#include "parsimony/pruners/level_counts.h"

namespace parsimony {

namespace {

/// Request per matrix; kNone where one of its layers is not pruned by elements.
class Requests {
 public:
  explicit Requests(const Settings& settings) : settings_(settings) {}

  void add(WeightId weight, const LayerSetting& setting) {
    const int request = by_element(setting) ? setting.request : kNone;
    const auto [place, is_new] = request_.try_emplace(weight, request);
    if (is_new) {
      order_.push_back(weight);
    } else if (request == kNone || place->second == kNone) {
      place->second = kNone;
    } else if (of(request).ratio < of(place->second).ratio) {
      place->second = request;
    }
  }

  std::vector<WeightId> following(int request) const {
    std::vector<WeightId> result;
    for (WeightId weight : order_) {
      if (request_.at(weight) == request) result.push_back(weight);
    }
    return result;
  }

 private:
  const Request& of(int request) const { return settings_.requests[static_cast<size_t>(request)]; }
  bool by_element(const LayerSetting& setting) const {
    return setting.state == LayerSetting::State::kPruned &&
           of(setting.request).criterion == "level";
  }

  const Settings& settings_;
  std::map<WeightId, int> request_;
  std::vector<WeightId> order_;
};

}  // namespace

std::vector<TensorZeros> prune_elements(const Graph& graph, const Settings& settings) {
  const Layers layers(graph);
  Requests requests(settings);
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    if (!layers.contains(static_cast<NodeId>(n))) continue;
    for (ValueId value : layers.weights(static_cast<NodeId>(n))) {
      const WeightId weight = graph.value(value).weight;
      if (graph.weight(weight).dtype != DType::kUInt8) requests.add(weight, settings.layers[n]);
    }
  }
  std::vector<LeveledMatrix> matrices;
  for (size_t r = 0; r < settings.requests.size(); ++r) {
    for (const WeightId id : requests.following(static_cast<int>(r))) {
      matrices.push_back({&graph.weight(id), static_cast<int>(r)});
    }
  }
  const std::vector<int64_t> counts = level_counts(settings, matrices);
  std::vector<TensorZeros> result;
  for (size_t i = 0; i < matrices.size(); ++i) {
    if (counts[i] > 0) result.push_back({matrices[i].weight->name, counts[i]});
    if (graph.release) graph.release(*matrices[i].weight);
  }
  return result;
}

}  // namespace parsimony
