#include <algorithm>

#include "parsimony/base/ranges.h"
#include "parsimony/speedup/fit_layers.h"
#include "parsimony/training/recovery/match_outputs.h"

namespace parsimony::training {
namespace {

/// Finds for each value the last block with a layer that reads it, directly or through nodes
/// between layers. The network's outputs are read after all blocks.
class Boundaries {
 public:
  Boundaries(const Graph& graph, const std::vector<FitLayer>& layers, size_t size)
      : graph_(graph), last_reader_(graph.values.size(), 0) {
    IdVector<NodeId, size_t> block(graph.nodes.size(), kNoLayer);
    for (size_t l = 0; l < layers.size(); ++l) block[layers[l].node] = l / size;
    for (const ValueId output : graph.outputs) last_reader_[output] = kAfterAll;
    std::vector<NodeId> order = nodes_for(graph, graph.outputs);
    std::ranges::reverse(order);
    for (const NodeId n : order) {
      const size_t reader = block[n] != kNoLayer ? block[n] : last_reader_of(graph.nodes[n]);
      for_each_read(graph, graph.nodes[n],
                    [&](ValueId v) { last_reader_[v] = std::max(last_reader_[v], reader); });
    }
  }

  bool is_read_after(ValueId value, size_t block) const { return last_reader_[value] > block; }

 private:
  static constexpr size_t kNoLayer = -1;
  static constexpr size_t kAfterAll = -2;

  size_t last_reader_of(const Node& node) const {
    size_t last = 0;
    for (const ValueId v : node.outputs) {
      if (v != kNone) last = std::max(last, last_reader_[v]);
    }
    return last;
  }

  const Graph& graph_;
  IdVector<ValueId, size_t> last_reader_;
};

}  // namespace

std::vector<TrainedBlock> blocks_of(const Graph& graph, size_t layers) {
  const std::vector<FitLayer> all = fit_layers(graph);
  const Boundaries boundaries(graph, all, layers);
  std::vector<TrainedBlock> blocks;
  IdVector<NodeId, bool> done(graph.nodes.size(), false);
  std::set<std::string> trained;
  for (size_t begin = 0, b = 0; begin < all.size(); begin += layers, ++b) {
    TrainedBlock block;
    for (size_t l = begin; l < std::min(begin + layers, all.size()); ++l) {
      const ValueId answer = all[l].answer;
      if (boundaries.is_read_after(answer, b) && !contains(block.values, answer)) {
        block.values.push_back(answer);
      }
    }
    for (const NodeId n : nodes_for(graph, block.values, done)) {
      done[n] = true;
      for (const ValueId v : graph.nodes[n].inputs) {
        const WeightId weight = v == kNone ? kNone : graph.value(v).weight;
        if (weight == kNone) continue;
        const std::string& name = graph.weight(weight).name;
        if (trained.insert(name).second) block.weights.insert(name);
      }
    }
    if (!block.values.empty() && !block.weights.empty()) blocks.push_back(std::move(block));
  }
  return blocks;
}

}  // namespace parsimony::training
