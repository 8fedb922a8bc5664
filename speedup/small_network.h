// The small network as a graph whose values may still change; recovery works on it.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "parsimony/graph/graph.h"
#include "parsimony/graph/model_editor.h"
#include "parsimony/speedup/plan.h"

namespace parsimony {

/// A GraphEditor that keeps all elements of all weights, and zeroes them, too.
class ValueEditor : public GraphEditor {
 public:
  explicit ValueEditor(const Graph& original) : GraphEditor(original, Elements::kAll) {}
  void zero_smallest(const std::string& tensor, int64_t count) override;
};

/// The result of applying `plan` to `original`. No file or module is edited; every change of a
/// value becomes an update in the plan, so that replaying it yields the same network.
class SmallNetwork {
 public:
  /// `original` must outlive this. @throws ModelError if the plan does not fit, ConfigError
  SmallNetwork(const Graph& original, const Plan& plan);

  /// With the current values. Activations have the original's ids; so have nodes, unless the plan
  /// removes blocks.
  const Graph& graph() const { return editor_.graph(); }

  /// Returns the indices along `axis` of a weight that the plan keeps; empty: all of them.
  std::vector<int64_t> kept(const std::string& weight, int axis) const;

  /// Inputs and outputs that are shorter than the original's.
  const std::vector<PlanEnd>& ends() const { return ends_; }

  /// Replaces all remaining elements of a weight of `graph()`: of its type, little-endian,
  /// row-major. Equal elements count as no change.
  void assign(const Weight& weight, const std::vector<std::byte>& values,
              const std::string& reason);

  /// The same, rounded to its type.
  void assign_numbers(const Weight& weight, const std::vector<double>& values,
                      const std::string& reason);

  /// The plan's updates and the assigned values. A tensor that was changed several times has its
  /// last values and all reasons.
  std::vector<TensorUpdate> updates() const;

 private:
  ValueEditor editor_;
  TensorCuts cuts_;
  std::vector<PlanEnd> ends_;
  std::vector<TensorUpdate> updates_;
};

}  // namespace parsimony
