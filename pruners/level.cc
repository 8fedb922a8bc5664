#include "parsimony/pruners/level.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "parsimony/masks/smallest.h"
#include "parsimony/pruners/layers.h"

namespace parsimony {

namespace {

constexpr double kSlack = 1e-9;  // 0.29 · 100 is 28.999…

int64_t floor_of(double ratio, int64_t count) {
  return static_cast<int64_t>(std::floor(ratio * static_cast<double>(count) + kSlack));
}

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

std::vector<int64_t> count_zeros(const std::vector<const Weight*>& weights,
                                 const Request& request) {
  if (request.scope == Scope::kGlobal) {
    int64_t total = 0;
    for (const Weight* weight : weights) total += weight->count();
    return count_smallest(weights, floor_of(request.ratio, total));
  }
  std::vector<int64_t> counts;
  for (const Weight* weight : weights) counts.push_back(floor_of(request.ratio, weight->count()));
  return counts;
}

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
  std::vector<TensorZeros> result;
  for (size_t r = 0; r < settings.requests.size(); ++r) {
    std::vector<const Weight*> weights;
    for (WeightId id : requests.following(static_cast<int>(r))) {
      weights.push_back(&graph.weight(id));
    }
    const std::vector<int64_t> counts = count_zeros(weights, settings.requests[r]);
    for (size_t i = 0; i < weights.size(); ++i) {
      if (counts[i] > 0) result.push_back({weights[i]->name, counts[i]});
      if (graph.release) graph.release(*weights[i]);
    }
  }
  return result;
}

}  // namespace parsimony
