#include <algorithm>
#include <cstdint>
#include <limits>

#include "parsimony/report/network/layers_impl.h"

namespace parsimony {
namespace {

constexpr int kOrderSweeps = 16;

/// Counts of positions, added up over prefixes in logarithmic time (a Fenwick tree).
class PrefixCounts {
 public:
  explicit PrefixCounts(size_t size) : counts_(size + 1) {}
  void add(size_t at) {
    for (size_t i = at + 1; i < counts_.size(); i += i & -i) ++counts_[i];
  }
  /// Of the positions up to `at`.
  int64_t up_to(size_t at) const {
    int64_t sum = 0;
    for (size_t i = at + 1; i > 0; i -= i & -i) sum += counts_[i];
    return sum;
  }

 private:
  std::vector<int64_t> counts_;
};

class Sorter {
 public:
  explicit Sorter(LayeredGraph& graph) : graph_(graph), position_(graph.vertices.size()) {
    for (const auto& layer : graph_.layers) number(layer);
  }

  void run() {
    for (auto& layer : graph_.layers) sort(layer, &Vertex::above);
    auto best = graph_.layers;
    int64_t fewest = crossings();
    for (int sweep = 0; sweep < kOrderSweeps && fewest > 0; ++sweep) {
      if (sweep % 2 == 0) {
        for (size_t l = graph_.layers.size(); l-- > 0;) sort(graph_.layers[l], &Vertex::below);
      } else {
        for (auto& layer : graph_.layers) sort(layer, &Vertex::above);
      }
      const int64_t found = crossings();
      if (found >= fewest) continue;
      fewest = found;
      best = graph_.layers;
    }
    graph_.layers = std::move(best);
  }

 private:
  void number(const std::vector<int>& layer) {
    for (size_t i = 0; i < layer.size(); ++i) position_[layer[i]] = static_cast<double>(i);
  }

  /// By the mean position of neighbours; who has none keeps its place.
  void sort(std::vector<int>& layer, std::vector<int> Vertex::*neighbours) {
    std::vector<std::pair<double, int>> keyed;
    for (const int v : layer) {
      const std::vector<int>& near = graph_.vertices[v].*neighbours;
      double sum = 0;
      for (const int n : near) sum += position_[n];
      keyed.emplace_back(near.empty() ? position_[v] : sum / static_cast<double>(near.size()), v);
    }
    std::ranges::stable_sort(keyed, {}, &std::pair<double, int>::first);
    for (size_t i = 0; i < layer.size(); ++i) layer[i] = keyed[i].second;
    number(layer);
  }

  int64_t crossings() const {
    int64_t sum = 0;
    for (size_t l = 1; l < graph_.layers.size(); ++l) {
      PrefixCounts ends(graph_.layers[l].size());
      int64_t before = 0;
      for (const int v : graph_.layers[l - 1]) {
        const std::vector<int>& below = graph_.vertices[v].below;
        for (const int n : below) sum += before - ends.up_to(static_cast<size_t>(position_[n]));
        for (const int n : below) ends.add(static_cast<size_t>(position_[n]));
        before += static_cast<int64_t>(below.size());
      }
    }
    return sum;
  }

  LayeredGraph& graph_;
  std::vector<double> position_;
};

}  // namespace

void order_layers(LayeredGraph& graph) { Sorter(graph).run(); }

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
