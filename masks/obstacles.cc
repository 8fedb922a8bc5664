#include "parsimony/graph/operators/operands.h"
#include "parsimony/masks/obstacles_impl.h"

namespace parsimony {
namespace {

/// A living line whose indices all hang together cannot lose one of them.
bool is_one_class(const Lines& lines, Classes& classes, LineId line) {
  for (int64_t i = 1; i < lines.size(line); ++i) {
    if (classes.root(line, i) != classes.root(line, 0)) return false;
  }
  return true;
}

/// Empty if nothing is in the way.
Obstacle obstacle_at(const Lines& lines, Classes& classes, const WeightRead& read) {
  const LineId line = lines.of(read.value, read.dim);
  Obstacle obstacle{read.value, read.dim, 0, kNone, false, {}};
  const Reason* why = nullptr;
  if (lines.dead(line)) {
    obstacle.pinned = lines.size(line);
    why = &lines.why_dead(line);
  } else {
    for (int64_t i = 0; i < lines.size(line); ++i) {
      const Reason* pin = classes.pinned(classes.root(line, i));
      if (pin == nullptr) continue;
      ++obstacle.pinned;
      why = pin;
    }
  }
  if (why != nullptr) {
    obstacle.node = why->node;
    obstacle.structural = why->structural;
    obstacle.reason = why->words();
  } else if (is_one_class(lines, classes, line)) {
    obstacle.pinned = lines.size(line);
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

std::vector<Obstacle> find_obstacles(const Graph& graph, const Lines& lines, Classes& classes,
                                     const std::vector<WeightRead>& reads) {
  std::vector<Obstacle> obstacles;
  for (const WeightRead& read : reads) {
    Obstacle obstacle = obstacle_at(lines, classes, read);
    if (!obstacle.reason.empty()) obstacles.push_back(std::move(obstacle));
  }
  add_unread(graph, obstacles);
  return obstacles;
}

}  // namespace parsimony
