#include <algorithm>
#include <limits>

#include "parsimony/report/network/layers_impl.h"

namespace parsimony {
namespace {

constexpr int kPlaceSweeps = 24;

double gap_between(const Vertex& a, const Vertex& b) {
  return (a.width + b.width) / 2.0 + (a.is_bend && b.is_bend ? 10 : 22);
}

/// Long lines want to be straight most of all, and a layer rather goes on below its source than
/// beside a line that passes it, or below what is made of weights alone.
double pull(const Vertex& a, const Vertex& b) {
  if (a.is_bend && b.is_bend) return 8;
  if (b.above.empty() && b.layer < a.layer) return 0.5;
  return a.is_bend || b.is_bend ? 1 : 3;
}

/// Where a vertex wants to be: the weighted median of its neighbours.
double wanted_x(const LayeredGraph& graph, const Vertex& vertex, const std::vector<int>& near) {
  if (near.empty()) return vertex.x;
  std::vector<std::pair<double, double>> at;
  double half = 0;
  for (const int n : near) {
    const Vertex& other = graph.vertices[n];
    at.emplace_back(other.x, pull(vertex, other));
    half += at.back().second / 2;
  }
  std::ranges::sort(at);
  double sum = 0;
  for (size_t i = 0; i < at.size(); ++i) {
    sum += at[i].second;
    if (sum > half) return at[i].first;
    if (sum == half) return std::clamp(vertex.x, at[i].first, at[i + 1].first);  // all as good
  }
  return at.back().first;
}

/// How firmly a vertex asks for its place. A line gives way to boxes where it begins; further down
/// it stays straight. Who has no neighbours goes where there is room.
double firmness(const LayeredGraph& graph, const Vertex& vertex, const std::vector<int>& near) {
  if (near.empty()) return 1e-3;
  if (!vertex.is_bend) return 6;
  const bool goes_on = std::ranges::any_of(near, [&](int n) { return graph.vertices[n].is_bend; });
  return goes_on ? 4 : 1e-3;
}

/// The places closest to the wanted ones, by least squares, that keep order and gaps: isotonic
/// regression by pooling adjacent violators.
void settle(LayeredGraph& graph, const std::vector<int>& layer, const std::vector<double>& wanted,
            const std::vector<double>& weights) {
  struct Pool {
    double weight = 0;
    double sum = 0;
    size_t count = 0;
    double mean() const { return sum / weight; }
  };
  std::vector<Pool> pools;
  std::vector<double> offset(layer.size());
  for (size_t i = 0; i < layer.size(); ++i) {
    const Vertex& vertex = graph.vertices[layer[i]];
    if (i > 0) offset[i] = offset[i - 1] + gap_between(graph.vertices[layer[i - 1]], vertex);
    pools.push_back({weights[i], weights[i] * (wanted[i] - offset[i]), 1});
    while (pools.size() > 1 && pools[pools.size() - 2].mean() >= pools.back().mean()) {
      const Pool last = pools.back();
      pools.pop_back();
      pools.back().weight += last.weight;
      pools.back().sum += last.sum;
      pools.back().count += last.count;
    }
  }
  size_t i = 0;
  for (const Pool& pool : pools) {
    for (size_t k = 0; k < pool.count; ++k, ++i) {
      graph.vertices[layer[i]].x = pool.mean() + offset[i];
    }
  }
}

/// By the neighbours on one side; who has none there, by those on the other.
void sweep(LayeredGraph& graph, const std::vector<int>& layer, bool by_sources) {
  std::vector<double> wanted;
  std::vector<double> weights;
  for (const int v : layer) {
    const Vertex& vertex = graph.vertices[v];
    const std::vector<int>& near = by_sources ? vertex.above : vertex.below;
    const std::vector<int>& others = by_sources ? vertex.below : vertex.above;
    wanted.push_back(wanted_x(graph, vertex, near.empty() ? others : near));
    weights.push_back(firmness(graph, vertex, near));
  }
  settle(graph, layer, wanted, weights);
}

}  // namespace

void place_vertices(LayeredGraph& graph) {
  for (const auto& layer : graph.layers) {
    settle(graph, layer, std::vector<double>(layer.size(), 0.0),
           std::vector<double>(layer.size(), 1.0));
  }
  for (int i = 0; i < kPlaceSweeps; ++i) {
    for (size_t l = graph.layers.size(); l-- > 0;) sweep(graph, graph.layers[l], false);
    for (const auto& layer : graph.layers) sweep(graph, layer, true);
  }
  // Once more: who has no source went by places below that have moved since.
  for (const auto& layer : graph.layers) sweep(graph, layer, true);
  double least = std::numeric_limits<double>::max();
  for (const Vertex& vertex : graph.vertices)
    least = std::min(least, vertex.x - vertex.width / 2.0);
  for (Vertex& vertex : graph.vertices) vertex.x -= least;
}

}  // namespace parsimony
