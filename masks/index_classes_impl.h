// Unites the indices of all dim classes into equivalence classes of indices that can only be
// removed together. Private to masks/.
#pragma once

#include <vector>

#include "parsimony/masks/axes_impl.h"
#include "parsimony/masks/dim_classes_impl.h"
#include "parsimony/masks/effects_impl.h"
#include "parsimony/masks/union_find.h"

namespace parsimony {

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
