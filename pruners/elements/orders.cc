#include "parsimony/pruners/elements/orders.h"

#include <map>

#include "parsimony/pruners/criterion.h"
#include "parsimony/pruners/layers.h"

namespace parsimony::elements {

namespace {

/// kNone where the layer is not pruned by elements.
int request_of(const LayerSetting& setting, const Settings& settings) {
  if (setting.state != LayerSetting::State::kPruned) return kNone;
  const Request& request = settings.requests[setting.request];
  return find_criterion(request.criterion).score == nullptr ? setting.request : kNone;
}

/// The more careful of two requests for one matrix.
int more_careful(int a, int b, const Settings& settings) {
  if (a == kNone || b == kNone) return kNone;
  const auto ratio = [&](int r) { return settings.requests[r].ratio; };
  return ratio(b) < ratio(a) ? b : a;
}

}  // namespace

std::vector<Order> orders_of(const Graph& graph, const Settings& settings) {
  const Layers layers(graph);
  std::vector<Order> orders;
  std::map<WeightId, size_t> place;
  for (const NodeId n : graph.nodes.ids()) {
    const auto layer = n;
    if (!layers.contains(layer)) continue;
    const int request = request_of(settings.layers[n], settings);
    for (ValueId value : layers.weights(layer)) {
      const WeightId weight = graph.value(value).weight;
      const auto [found, is_new] = place.try_emplace(weight, orders.size());
      if (is_new) orders.push_back({weight, request, {}});
      Order& order = orders[found->second];
      order.request = more_careful(order.request, request, settings);
      order.readers.push_back({layer, value});
    }
  }
  std::erase_if(orders, [](const Order& order) { return order.request == kNone; });
  return orders;
}

}  // namespace parsimony::elements
