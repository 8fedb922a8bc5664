#include <algorithm>

#include "parsimony/masks/classes_impl.h"

namespace parsimony {
namespace {

// Reasons of our own are numbered downwards from here, those of the lines upwards from 0.
constexpr int kRefused = -2;

}  // namespace

Classes::Classes(const Lines& lines, const Axes& axes) : lines_(lines), axes_(axes) {
  number_elements();
  unite_products();
  unite_maps();
  mark_pins();
}

void Classes::number_elements() {
  int64_t total = 0;
  for (const LineId line : lines_.all()) {
    line_begin_.push_back(total);
    total += length(line);
  }
  line_begin_.push_back(total);
  for (const Axis& axis : axes_.all()) {
    coordinate_begin_.push_back(total);
    total += axis.free ? axis.size : 0;
  }
  sets_ = UnionFind(total);
  pin_.assign(total, kNone);
}

/// Index i of a line belongs to coordinate (i / stride) % size of each free axis on it.
void Classes::unite_products() {
  for (const AxisId a : axes_.all().ids()) {
    const Axis& axis = axes_.all()[a];
    if (!axis.free) continue;
    for (const Axis::Place& place : axis.places) {
      for (int64_t i = 0; i < length(place.line); ++i) {
        const int64_t coordinate = (i / place.stride) % axis.size;
        sets_.unite(element(place.line, i),
                    static_cast<int32_t>(coordinate_begin_[a] + coordinate));
      }
    }
  }
}

void Classes::unite_maps() {
  for (const LineId line : lines_.all()) {
    if (lines_.dead(line)) continue;
    for (const LineRun& run : lines_.runs(line)) {
      // Each map is stored at both of its lines; one of them is enough.
      if (run.other == kNone || run.other < line || lines_.dead(run.other)) continue;
      for (int64_t i = 0; i < run.count; ++i) {
        sets_.unite(element(line, run.begin + i), element(run.other, run.other_begin + i));
      }
    }
  }
}

/// Pins a class; the first reason stays.
void Classes::pin(int32_t element, int reason) {
  int& at = pin_[sets_.find(element)];
  if (at == kNone) at = reason;
}

void Classes::mark_pins() {
  for (const LineId line : lines_.all()) {
    const int64_t n = length(line);
    for (int64_t i = 0; i < n; ++i) {
      if (const int reason = lines_.pinned(line, i); reason != kNone) pin(element(line, i), reason);
    }
    if (n == 0) continue;
    for (const PlacedTerm& placed : lines_.terms(line)) {
      const auto is_free = [&](int l) { return axes_.free(lines_.letter_id(placed.node, l)); };
      const auto& letters = placed.term->letters;
      if (std::any_of(letters.begin(), letters.end(), is_free)) continue;
      const int reason = kRefused - static_cast<int>(refused_.size());
      refused_.push_back({placed.node, false, "competes with another axis of this dimension"});
      for (int64_t i = 0; i < n; ++i) pin(element(line, i), reason);
      break;
    }
  }
}

const Reason& Classes::reason(int id) const {
  return id <= kRefused ? refused_[kRefused - id] : lines_.reason(id);
}

std::vector<NodeId> Classes::befallen(const std::vector<Event>& events) {
  std::vector<NodeId> nodes(sets_.count(), kNone);
  const auto mark = [&](int32_t root, NodeId node) {
    NodeId& at = nodes[root];
    if (at == kNone) at = node;
  };
  for (const Event& event : events) {
    const AxisId axis = axes_.axis_of(event.letter);
    if (event.line != kNone) {
      for (int64_t i = 0; i < length(event.line); ++i) mark(root(event.line, i), event.node);
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
