#include <algorithm>

#include "parsimony/masks/index_classes_impl.h"

namespace parsimony {
namespace {

// Reasons of our own are numbered downwards from here, those of the dim classes upwards from 0.
constexpr int kRefused = -2;

}  // namespace

IndexClasses::IndexClasses(const DimClasses& dim_classes, const Axes& axes)
    : dim_classes_(dim_classes), axes_(axes) {
  number_elements();
  unite_products();
  unite_maps();
  mark_pins();
}

void IndexClasses::number_elements() {
  int64_t total = 0;
  for (const DimClassId dim_class : dim_classes_.all()) {
    dim_class_begin_.push_back(total);
    total += length(dim_class);
  }
  dim_class_begin_.push_back(total);
  for (const Axis& axis : axes_.all()) {
    coordinate_begin_.push_back(total);
    total += axis.free ? axis.size : 0;
  }
  sets_ = UnionFind(total);
  pin_.assign(total, kNone);
}

/// Index i of a dim class belongs to coordinate (i / stride) % size of each free axis on it.
void IndexClasses::unite_products() {
  for (const AxisId a : axes_.all().ids()) {
    const Axis& axis = axes_.all()[a];
    if (!axis.free) continue;
    for (const Axis::Position& position : axis.positions) {
      for (int64_t i = 0; i < length(position.dim_class); ++i) {
        const int64_t coordinate = (i / position.stride) % axis.size;
        sets_.unite(element(position.dim_class, i),
                    static_cast<int32_t>(coordinate_begin_[a] + coordinate));
      }
    }
  }
}

void IndexClasses::unite_maps() {
  for (const DimClassId dim_class : dim_classes_.all()) {
    if (dim_classes_.wholly_pinned(dim_class)) continue;
    for (const ClassSegment& run : dim_classes_.segments(dim_class)) {
      // Each map is stored in both of its dim classes; one of them is enough.
      if (run.other == kNone || run.other < dim_class || dim_classes_.wholly_pinned(run.other))
        continue;
      for (int64_t i = 0; i < run.count; ++i) {
        sets_.unite(element(dim_class, run.begin + i), element(run.other, run.other_begin + i));
      }
    }
  }
}

/// Pins a class; the first reason stays.
void IndexClasses::pin(int32_t element, int reason) {
  int& at = pin_[sets_.find(element)];
  if (at == kNone) at = reason;
}

void IndexClasses::mark_pins() {
  for (const DimClassId dim_class : dim_classes_.all()) {
    const int64_t n = length(dim_class);
    for (int64_t i = 0; i < n; ++i) {
      if (const int reason = dim_classes_.pinned(dim_class, i); reason != kNone)
        pin(element(dim_class, i), reason);
    }
    if (n == 0) continue;
    for (const PlacedTerm& placed : dim_classes_.terms(dim_class)) {
      const auto is_free = [&](int l) { return axes_.free(dim_classes_.label_id(placed.node, l)); };
      const auto& labels = placed.term->labels;
      if (std::ranges::any_of(labels, is_free)) continue;
      const int reason = kRefused - static_cast<int>(refused_.size());
      refused_.push_back({placed.node, false, "competes with another axis of this dimension"});
      for (int64_t i = 0; i < n; ++i) pin(element(dim_class, i), reason);
      break;
    }
  }
}

const Reason& IndexClasses::reason(int id) const {
  return id <= kRefused ? refused_[kRefused - id] : dim_classes_.reason(id);
}

std::vector<NodeId> IndexClasses::first_occurrences(const std::vector<Occurrence>& events) {
  std::vector<NodeId> nodes(sets_.count(), kNone);
  const auto mark = [&](int32_t root, NodeId node) {
    NodeId& at = nodes[root];
    if (at == kNone) at = node;
  };
  for (const Occurrence& event : events) {
    const AxisId axis = axes_.axis_of(event.label);
    if (event.dim_class != kNone) {
      for (int64_t i = 0; i < length(event.dim_class); ++i)
        mark(root(event.dim_class, i), event.node);
    } else if (axis != kNone) {
      const int64_t begin = coordinate_begin_[axis];
      for (int64_t c = 0; c < axes_.all()[axis].size; ++c) {
        mark(root(begin + c), event.node);
      }
    }
  }
  return nodes;
}

}  // namespace parsimony
