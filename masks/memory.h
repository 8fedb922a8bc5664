// Bytes of a network's weights, and of its activations while it runs, dense or under masks.
#pragma once

#include <cstdint>
#include <vector>

#include "parsimony/masks/cost.h"

namespace parsimony {

/// Returns the size in bytes of all weights, as inference holds them.
int64_t weight_bytes(const Graph& graph);

/// All weights as a file holds them.
class WeightBytes {
 public:
  WeightBytes(const Graph& graph, const Coupling& coupling);
  int64_t under(const AxisMasks& masks) const;

 private:
  ElementCounts counts_;
  StoredElements bits_;
};

/// The activation memory that is alive while a node runs.
struct MemoryStep {
  NodeId node = kNone;
  int64_t bytes = 0;
};

/// Activations of nodes that run one after the other, in the graph's order. A tensor lives from the
/// node that makes it to the last that reads it, an input of the network from the beginning, an
/// output to the end. Views (Reshape) take no memory of their own, nor does what an elementwise
/// operator can write over an operand that ends with it. Constants do not count, nor what is inside
/// of branches and loops.
class ActivationMemory {
 public:
  /// Takes the shapes from `facts`; tensors of unknown shape do not count.
  ActivationMemory(const Graph& graph, const Facts& facts, const Coupling& coupling);

  std::vector<MemoryStep> curve(const AxisMasks& masks) const;
  /// The largest step.
  int64_t peak(const AxisMasks& masks) const;
  /// Returns the size of the arena as engines for microcontrollers plan it: larger tensors go
  /// first, each at the lowest multiple of 16 where nothing lies that is alive with it.
  /// @source TensorFlow Lite Micro, GreedyMemoryPlanner
  int64_t arena(const AxisMasks& masks) const;

 private:
  /// Memory that tensors share; as large as the largest of them.
  struct Buffer {
    std::vector<int> tensors;  ///< numbers of counts_
    int first = 0;             ///< step
    int last = 0;
  };

  std::vector<int64_t> sizes(const AxisMasks& masks) const;  ///< by buffer
  std::vector<int64_t> steps(const AxisMasks& masks) const;

  ElementCounts counts_;
  std::vector<Buffer> buffers_;
  std::vector<NodeId> nodes_;  ///< that run, in order
};

}  // namespace parsimony
