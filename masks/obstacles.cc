#include "parsimony/graph/operators/operands.h"
#include "parsimony/masks/obstacles_impl.h"

namespace parsimony {
namespace {

/// A dim class whose indices are all coupled cannot lose one of them.
bool is_one_class(const DimClasses& dim_classes, IndexClasses& classes, DimClassId dim_class) {
  for (int64_t i = 1; i < dim_classes.size(dim_class); ++i) {
    if (classes.root(dim_class, i) != classes.root(dim_class, 0)) return false;
  }
  return true;
}

/// Empty if nothing prevents pruning.
Obstacle obstacle_at(const DimClasses& dim_classes, IndexClasses& classes, const WeightRead& read) {
  const DimClassId dim_class = dim_classes.of(read.value, read.dim);
  Obstacle obstacle{read.value, read.dim, 0, kNone, false, {}};
  const Reason* why = nullptr;
  if (dim_classes.wholly_pinned(dim_class)) {
    obstacle.pinned = dim_classes.size(dim_class);
    why = &dim_classes.why_pinned(dim_class);
  } else {
    for (int64_t i = 0; i < dim_classes.size(dim_class); ++i) {
      const Reason* pin = classes.pinned(classes.root(dim_class, i));
      if (pin == nullptr) continue;
      ++obstacle.pinned;
      why = pin;
    }
  }
  if (why != nullptr) {
    obstacle.node = why->node;
    obstacle.structural = why->structural;
    obstacle.reason = why->words();
  } else if (is_one_class(dim_classes, classes, dim_class)) {
    obstacle.pinned = dim_classes.size(dim_class);
    obstacle.reason = "all its indices hang together as one channel";
  }
  return obstacle;
}

/// Weights that no node reads.
void add_unread(const Graph& graph, std::vector<Obstacle>& obstacles) {
  for (const ValueId v : graph.values.ids()) {
    const Value& value = graph.values[v];
    if (!is_weight(graph, value) || !value.uses.empty()) continue;
    const Shape& dims = graph.weight(value.weight).dims;
    for (size_t d = 0; d < dims.size(); ++d) {
      if (dims[d] <= 1) continue;
      const std::string reason = value.captured
                                     ? "leaves a body as it is, or is described by an annotation"
                                     : "is read by no node";
      obstacles.push_back({v, static_cast<int>(d), dims[d], kNone, false, reason});
    }
  }
}

}  // namespace

std::vector<Obstacle> find_obstacles(const Graph& graph, const DimClasses& dim_classes,
                                     IndexClasses& classes, const std::vector<WeightRead>& reads) {
  std::vector<Obstacle> obstacles;
  for (const WeightRead& read : reads) {
    Obstacle obstacle = obstacle_at(dim_classes, classes, read);
    if (!obstacle.reason.empty()) obstacles.push_back(std::move(obstacle));
  }
  add_unread(graph, obstacles);
  return obstacles;
}

}  // namespace parsimony
