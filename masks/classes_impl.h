// Unites the indices of all lines to classes: what can only be removed together. Private to masks/.
#pragma once

#include <vector>

#include "parsimony/masks/axes_impl.h"
#include "parsimony/masks/effects_impl.h"
#include "parsimony/masks/lines_impl.h"
#include "parsimony/masks/union_find.h"

namespace parsimony {

/// An element is one index of a living line, or one coordinate of a free axis.
class Classes {
 public:
  Classes(const Lines& lines, const Axes& axes);

  /// Elements of a line; 0 where the whole line is dead.
  int64_t length(LineId line) const { return lines_.dead(line) ? 0 : lines_.size(line); }
  /// Per line, its first element; one past the end.
  const IdVector<LineId, int64_t>& line_begin() const { return line_begin_; }
  /// Elements with the coordinates behind those of the lines.
  size_t count() const { return sets_.count(); }

  int32_t root(LineId line, int64_t i) { return sets_.find(element(line, i)); }
  int32_t root(int64_t element) { return sets_.find(static_cast<int32_t>(element)); }

  /// Why the class of `root` may not be removed; null if it may.
  const Reason* pinned(int32_t root) const {
    const int id = pin_[root];
    return id == kNone ? nullptr : &reason(id);
  }

  /// Per root, the first node at which one of the events befalls its class.
  std::vector<NodeId> befallen(const std::vector<Event>& events);

 private:
  int32_t element(LineId line, int64_t i) const {
    return static_cast<int32_t>(line_begin_[line] + i);
  }
  const Reason& reason(int id) const;
  void number_elements();
  void unite_products();
  void unite_maps();
  void mark_pins();
  void pin(int32_t element, int reason);

  const Lines& lines_;
  const Axes& axes_;
  UnionFind sets_;
  IdVector<LineId, int64_t> line_begin_;
  IdVector<AxisId, int64_t> coordinate_begin_;
  std::vector<int> pin_;  // per root
  std::vector<Reason> refused_;
};

}  // namespace parsimony
