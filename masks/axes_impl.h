// Second half of the solver: which axes are free, and the index classes that follow. Private to
// masks/.
#pragma once

#include <vector>

#include "parsimony/masks/dim_classes_impl.h"
#include "parsimony/masks/union_find.h"

namespace parsimony {

/// An axis of one size: its strides within the dim classes that contain it, and the labels that
/// name it.
struct Axis {
  struct Position {
    DimClassId dim_class = kNone;
    int64_t stride = 1;
  };
  int64_t size = 1;
  int priority = 0;
  std::vector<Position> positions;
  std::vector<LabelId> labels;
  bool free = false;
};

using AxisId = Id<struct AxisTag>;

/// The axes of all products; the granularity policy decides which are free and which pinned. A
/// label that never appears in a product has no axis and is free unless it is pinned.
class Axes {
 public:
  Axes(const Graph& graph, const DimClasses& dim_classes, const CouplingOptions& options);

  const IdVector<AxisId, Axis>& all() const { return axes_; }
  /// May coordinates of the label be removed?
  bool free(LabelId label) const {
    const AxisId axis = axis_of_label_[label];
    return !dim_classes_.label_pinned(label) && (axis == kNone || axes_[axis].free);
  }
  AxisId axis_of(LabelId label) const { return axis_of_label_[label]; }

 private:
  void collect(const Graph& graph, const CouplingOptions& options);
  void choose(unsigned shuffle_seed);

  const DimClasses& dim_classes_;
  IdVector<AxisId, Axis> axes_;
  IdVector<LabelId, AxisId> axis_of_label_;
};

}  // namespace parsimony
