#include "parsimony/report/network/layout.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

namespace parsimony {
namespace {

/// A stack of boxes, or a point where a long line passes a layer.
struct Vertex {
  int layer = 0;
  int width = 0;
  bool is_bend = false;
  double x = 0;  ///< of its middle
  std::vector<int> above;
  std::vector<int> below;
};

struct LayeredGraph {
  std::vector<Vertex> vertices;
  std::vector<std::vector<int>> layers;  ///< vertices from left to right
};

constexpr int kOrderSweeps = 16;

/// Counts of positions with prefix sums in logarithmic time (a Fenwick tree).
class PrefixCounts {
 public:
  explicit PrefixCounts(size_t size) : counts_(size + 1) {}
  void add(size_t at) {
    for (size_t i = at + 1; i < counts_.size(); i += i & -i) ++counts_[i];
  }
  /// Returns the count of the positions up to `at`.
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

  /// Sorts by the mean position of neighbours; vertices without neighbours keep their position.
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

/// Orders the vertices of every layer so that few lines cross.
void order_layers(LayeredGraph& graph) { Sorter(graph).run(); }

constexpr int kPlaceSweeps = 24;

double gap_between(const Vertex& a, const Vertex& b) {
  return (a.width + b.width) / 2.0 + (a.is_bend && b.is_bend ? 10 : 22);
}

/// Returns the weight of a line: long lines should be straight most of all, and a layer should
/// rather be below its source than next to a passing line, or below nodes that depend on weights
/// only.
double pull(const Vertex& a, const Vertex& b) {
  if (a.is_bend && b.is_bend) return 8;
  if (b.above.empty() && b.layer < a.layer) return 0.5;
  return a.is_bend || b.is_bend ? 1 : 3;
}

/// Returns the preferred position of a vertex: the weighted median of its neighbours.
double requested_x(const LayeredGraph& graph, const Vertex& vertex, const std::vector<int>& near) {
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

/// Returns the weight of a vertex's preferred position. A line yields to boxes where it begins and
/// is straight further down; vertices without neighbours are placed where there is room.
double firmness(const LayeredGraph& graph, const Vertex& vertex, const std::vector<int>& near) {
  if (near.empty()) return 1e-3;
  if (!vertex.is_bend) return 6;
  const bool goes_on = std::ranges::any_of(near, [&](int n) { return graph.vertices[n].is_bend; });
  return goes_on ? 4 : 1e-3;
}

/// Assigns the positions closest to the requested ones, by least squares, that keep order and gaps:
/// isotonic regression by pooling adjacent violators.
void settle(LayeredGraph& graph, const std::vector<int>& layer,
            const std::vector<double>& requested, const std::vector<double>& weights) {
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
    pools.push_back({weights[i], weights[i] * (requested[i] - offset[i]), 1});
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

/// Places vertices by their neighbours on one side; without any, by those on the other side.
void sweep(LayeredGraph& graph, const std::vector<int>& layer, bool by_sources) {
  std::vector<double> requested;
  std::vector<double> weights;
  for (const int v : layer) {
    const Vertex& vertex = graph.vertices[v];
    const std::vector<int>& near = by_sources ? vertex.above : vertex.below;
    const std::vector<int>& others = by_sources ? vertex.below : vertex.above;
    requested.push_back(requested_x(graph, vertex, near.empty() ? others : near));
    weights.push_back(firmness(graph, vertex, near));
  }
  settle(graph, layer, requested, weights);
}

/// Assigns x to every vertex, keeping the order.
void place_vertices(LayeredGraph& graph) {
  for (const auto& layer : graph.layers) {
    settle(graph, layer, std::vector<double>(layer.size(), 0.0),
           std::vector<double>(layer.size(), 1.0));
  }
  for (int i = 0; i < kPlaceSweeps; ++i) {
    for (size_t l = graph.layers.size(); l-- > 0;) sweep(graph, graph.layers[l], false);
    for (const auto& layer : graph.layers) sweep(graph, layer, true);
  }
  // Repeat: vertices without sources were placed by vertices that have moved since.
  for (const auto& layer : graph.layers) sweep(graph, layer, true);
  double least = std::numeric_limits<double>::max();
  for (const Vertex& vertex : graph.vertices)
    least = std::min(least, vertex.x - vertex.width / 2.0);
  for (Vertex& vertex : graph.vertices) vertex.x -= least;
}

// A hostile graph could have a long line from every box: lines beyond this limit have no bends.
constexpr int64_t kMostBends = 100'000;
constexpr int kLayerGap = 26;
constexpr int kMostLayerGap = 90;
constexpr int kLonePerLayer = 6;

/// Boxes that stand on each other; each stack is a vertex of the layered graph.
struct Stacks {
  std::vector<int> of_box;
  std::vector<std::vector<int>> boxes;
  std::vector<int> height;
};

Stacks make_stacks(const LayoutRequest& request) {
  const size_t count = request.heights.size();
  std::vector<int> outgoing(count);
  std::vector<int> incoming(count);
  std::vector<int> source(count, -1);
  for (const auto& [from, to] : request.lines) {
    ++outgoing[from];
    ++incoming[to];
    source[to] = from;
  }
  Stacks stacks{std::vector<int>(count), {}, {}};
  for (size_t b = 0; b < count; ++b) {
    if (request.joins[b] && incoming[b] == 1 && outgoing[source[b]] == 1) {
      stacks.of_box[b] = stacks.of_box[source[b]];
    } else {
      stacks.of_box[b] = static_cast<int>(stacks.boxes.size());
      stacks.boxes.emplace_back();
      stacks.height.push_back(0);
    }
    stacks.boxes[stacks.of_box[b]].push_back(static_cast<int>(b));
    stacks.height[stacks.of_box[b]] += request.heights[b];
  }
  return stacks;
}

class Layouter {
 public:
  explicit Layouter(const LayoutRequest& request)
      : request_(request), stacks_(make_stacks(request)) {}

  Layout run() {
    if (request_.heights.empty()) return {};
    rank();
    for (size_t s = 0; s < stacks_.boxes.size(); ++s) {
      Vertex vertex;
      vertex.layer = layer_of_[s];
      vertex.width = kBoxWidth;
      graph_.vertices.push_back(std::move(vertex));
    }
    lead_lines();
    graph_.layers.resize(*std::ranges::max_element(layer_of_) + 1);
    for (size_t v = 0; v < graph_.vertices.size(); ++v) {
      graph_.layers[graph_.vertices[v].layer].push_back(static_cast<int>(v));
    }
    order_layers(graph_);
    place_vertices(graph_);
    return result();
  }

 private:
  /// Puts each stack one layer below the last of its sources; stacks that do not depend on inputs
  /// just above their first reader. Lines lead from earlier stacks to later ones.
  void rank() {
    const size_t count = stacks_.boxes.size();
    layer_of_.assign(count, 0);
    targets_.resize(count);
    for (const auto& [from, to] : request_.lines) {
      const int a = stacks_.of_box[from];
      const int b = stacks_.of_box[to];
      if (a == b) continue;
      targets_[a].push_back(b);
    }
    for (size_t s = 0; s < count; ++s) {
      std::ranges::sort(targets_[s]);
      // Not std::ranges::unique, which clang 14 cannot read.
      targets_[s].erase(std::unique(targets_[s].begin(), targets_[s].end()), targets_[s].end());
      for (const int t : targets_[s]) layer_of_[t] = std::max(layer_of_[t], layer_of_[s] + 1);
    }
    std::vector<bool> depends(count);
    for (const int box : request_.inputs) depends[stacks_.of_box[box]] = true;
    for (size_t s = 0; s < count; ++s) {
      for (const int t : targets_[s]) depends[t] = depends[t] || depends[s];
    }
    for (size_t s = count; s-- > 0;) {
      if (depends[s] || targets_[s].empty()) continue;
      int first = layer_of_[targets_[s].front()];
      for (const int t : targets_[s]) first = std::min(first, layer_of_[t]);
      layer_of_[s] = first - 1;
    }
    rank_lone();
  }

  /// Puts stacks without lines last, a few per layer.
  void rank_lone() {
    std::vector<bool> alone(targets_.size(), true);
    for (size_t s = 0; s < targets_.size(); ++s) {
      if (!targets_[s].empty()) alone[s] = false;
      for (const int t : targets_[s]) alone[t] = false;
    }
    int last = -1;
    for (size_t s = 0; s < alone.size(); ++s) {
      if (!alone[s]) last = std::max(last, layer_of_[s]);
    }
    int count = 0;
    for (size_t s = 0; s < alone.size(); ++s) {
      if (alone[s]) layer_of_[s] = last + 1 + count++ / kLonePerLayer;
    }
  }

  int span(int from, int to) const { return layer_of_[to] - layer_of_[from]; }

  /// Returns the length of the longest line that may have bends.
  int longest_way() const {
    int longest = *std::ranges::max_element(layer_of_);
    for (; longest > 1; longest /= 2) {
      int64_t bends = 0;
      for (size_t s = 0; s < targets_.size(); ++s) {
        int most = 0;
        for (const int t : targets_[s]) {
          const int length = span(static_cast<int>(s), t);
          if (length <= longest) most = std::max(most, length - 1);
        }
        bends += most;
      }
      if (bends <= kMostBends) break;
    }
    return longest;
  }

  void connect(int above, int below) {
    graph_.vertices[above].below.push_back(below);
    graph_.vertices[below].above.push_back(above);
  }

  /// Routes the lines of a stack along one way, with a bend per layer.
  void lead_lines() {
    const int longest = longest_way();
    ways_.resize(targets_.size());
    for (size_t s = 0; s < targets_.size(); ++s) {
      std::vector<int>& way = ways_[s];
      way.push_back(static_cast<int>(s));
      for (const int t : targets_[s]) {
        const int length = span(static_cast<int>(s), t);
        if (length > longest) continue;
        while (std::ssize(way) < length) add_bend(static_cast<int>(s), way);
        connect(way[length - 1], t);
      }
    }
  }

  void add_bend(int stack, std::vector<int>& way) {
    const int bend = static_cast<int>(graph_.vertices.size());
    Vertex vertex;
    vertex.layer = layer_of_[stack] + static_cast<int>(way.size());
    vertex.is_bend = true;
    graph_.vertices.push_back(std::move(vertex));
    connect(way.back(), bend);
    way.push_back(bend);
  }

  Layout result() const {
    Layout layout;
    layout.layers = layers();
    layout.boxes.resize(request_.heights.size());
    for (size_t s = 0; s < stacks_.boxes.size(); ++s) {
      const Vertex& vertex = graph_.vertices[s];
      int y = layout.layers[vertex.layer].top;
      for (const int b : stacks_.boxes[s]) {
        layout.boxes[b] = {static_cast<int>(std::lround(vertex.x)) - kBoxWidth / 2, y, vertex.layer,
                           b != stacks_.boxes[s].front()};
        y += request_.heights[b];
      }
    }
    for (size_t s = 0; s < ways_.size(); ++s) {
      for (size_t i = 1; i < ways_[s].size(); ++i) {
        const Vertex& vertex = graph_.vertices[ways_[s][i]];
        layout.bends.push_back({static_cast<int>(std::lround(vertex.x)), vertex.layer,
                                stacks_.boxes[s].back(), i == 1 ? -1 : bend_of(ways_[s][i - 1])});
      }
    }
    for (const auto& [from, to] : request_.lines) {
      const int s = stacks_.of_box[from];
      const int length = span(s, stacks_.of_box[to]);
      const bool leads = length > 1 && length <= std::ssize(ways_[s]);
      layout.via.push_back(leads ? bend_of(ways_[s][length - 1]) : -1);
    }
    return layout;
  }

  /// Returns the bend of a vertex: bends follow the stacks, in the order of the ways.
  int bend_of(int vertex) const { return vertex - static_cast<int>(stacks_.boxes.size()); }

  /// Returns the layers, as high as their highest stack, with more room for wide steps sideways.
  std::vector<LayoutLayer> layers() const {
    std::vector<LayoutLayer> layers(graph_.layers.size());
    int y = 0;
    for (size_t l = 0; l < layers.size(); ++l) {
      int height = 0;
      double step = 0;
      for (const int v : graph_.layers[l]) {
        const Vertex& vertex = graph_.vertices[v];
        if (!vertex.is_bend) height = std::max(height, stacks_.height[v]);
        for (const int n : vertex.below) {
          step = std::max(step, std::abs(graph_.vertices[n].x - vertex.x));
        }
        layers[l].passing += vertex.below.empty() ? 0 : 1;
      }
      layers[l].top = y;
      layers[l].bottom = y + height;
      y += height + std::clamp(static_cast<int>(step / 8), kLayerGap, kMostLayerGap);
    }
    return layers;
  }

  const LayoutRequest& request_;
  Stacks stacks_;
  std::vector<int> layer_of_;              ///< per stack
  std::vector<std::vector<int>> targets_;  ///< per stack
  std::vector<std::vector<int>> ways_;     ///< per stack: itself and its bends, downwards
  LayeredGraph graph_;
};

}  // namespace

Layout lay_out(const LayoutRequest& request) { return Layouter(request).run(); }

}  // namespace parsimony
