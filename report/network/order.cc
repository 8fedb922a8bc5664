#include <algorithm>
#include <cstdint>

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

}  // namespace parsimony
