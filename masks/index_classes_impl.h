// Second half of the solver: which axes are free, and the classes of indices that can only be
// removed together. Private to masks/.
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

/// A node at which something happens to the channels of a dim class.
struct Occurrence {
  DimClassId dim_class = kNone;  ///< either all of a dim class
  LabelId label = kNone;         ///< or the coordinates of a label
  NodeId node = kNone;
};

/// An element is one index of a dim class that is not wholly pinned, or one coordinate of a free
/// axis.
class IndexClasses {
 public:
  IndexClasses(const DimClasses& dim_classes, const Axes& axes);

  /// Number of elements of a dim class; 0 if it is wholly pinned.
  int64_t length(DimClassId dim_class) const {
    return dim_classes_.wholly_pinned(dim_class) ? 0 : dim_classes_.size(dim_class);
  }
  /// Per dim class, its first element; one past the end.
  const IdVector<DimClassId, int64_t>& dim_class_begin() const { return dim_class_begin_; }
  /// Number of elements; the coordinates come after the indices of the dim classes.
  size_t count() const { return sets_.count(); }

  int32_t root(DimClassId dim_class, int64_t i) { return sets_.find(element(dim_class, i)); }
  int32_t root(int64_t element) { return sets_.find(static_cast<int32_t>(element)); }

  /// Why the class of `root` may not be removed; null if it may.
  const Reason* pinned(int32_t root) const {
    const int id = pin_[root];
    return id == kNone ? nullptr : &reason(id);
  }

  /// Per root, the first node at which one of the events concerns its class.
  std::vector<NodeId> first_occurrences(const std::vector<Occurrence>& events);

 private:
  int32_t element(DimClassId dim_class, int64_t i) const {
    return static_cast<int32_t>(dim_class_begin_[dim_class] + i);
  }
  const Reason& reason(int id) const;
  void number_elements();
  void unite_products();
  void unite_maps();
  void mark_pins();
  void pin(int32_t element, int reason);

  const DimClasses& dim_classes_;
  const Axes& axes_;
  UnionFind sets_;
  IdVector<DimClassId, int64_t> dim_class_begin_;
  IdVector<AxisId, int64_t> coordinate_begin_;
  std::vector<int> pin_;  // per root
  std::vector<Reason> refused_;
};

}  // namespace parsimony
