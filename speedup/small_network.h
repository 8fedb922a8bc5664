// The small network on the graph alone, with values that may still change: what recovery works on.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "parsimony/graph/graph.h"
#include "parsimony/graph/graph_editor.h"
#include "parsimony/speedup/plan.h"

namespace parsimony {

/// What `plan` makes of `original`. No file or module is edited; every change of a value becomes a
/// fold of the plan, so that whoever replays it gets the same network.
class SmallNetwork {
 public:
  /// `original` must outlive this. @throws ModelError if the plan does not fit, ConfigError
  SmallNetwork(const Graph& original, const Plan& plan);

  /// With the values as they are now. Activations have the original's numbers; so have nodes,
  /// unless the plan removes blocks.
  const Graph& graph() const { return editor_.graph(); }

  /// Which indices along `axis` of a weight the plan keeps; empty: all of them.
  std::vector<int64_t> kept(const std::string& weight, int axis) const;

  /// Gives a weight of `graph()` new elements, all that remain of it: of its type, little-endian,
  /// row-major. What is equal already is no change.
  void assign(const Weight& weight, const std::vector<std::byte>& values,
              const std::string& reason);

  /// The plan's folds and what was assigned. Where a tensor was changed several times its last
  /// values stand, with every reason.
  std::vector<PlanFold> folds() const;

 private:
  /// Zeroes elements as well, which the analysis of shapes has no need of.
  class Editor : public GraphEditor {
   public:
    explicit Editor(const Graph& original) : GraphEditor(original, Elements::kAll) {}
    void zero_smallest(const std::string& tensor, int64_t count) override;
  };

  Editor editor_;
  std::map<std::string, std::vector<AxisKeep>> cuts_;
  std::vector<PlanFold> folds_;
};

}  // namespace parsimony
