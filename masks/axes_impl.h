// Second half of the solver: which axes are free, and the classes of indices that follow. Private
// to masks/.
#pragma once

#include <vector>

#include "parsimony/masks/lines_impl.h"
#include "parsimony/masks/union_find.h"

namespace parsimony {

/// What shares a size and a stride on one line, and the letters that name it.
struct Axis {
  struct Place {
    LineId line = kNone;
    int64_t stride = 1;
  };
  int64_t size = 1;
  int priority = 0;
  std::vector<Place> places;
  std::vector<LetterId> letters;
  bool free = false;
};

using AxisId = Id<struct AxisTag>;

/// Axes of all products, chosen free or pinned by the policy. A letter that only ever stands alone
/// has no axis and is free unless it is dead.
class Axes {
 public:
  Axes(const Graph& graph, const Lines& lines, const CouplingOptions& options);

  const IdVector<AxisId, Axis>& all() const { return axes_; }
  /// May the letter's coordinates be removed?
  bool free(LetterId letter) const {
    const AxisId axis = axis_of_letter_[letter];
    return !lines_.letter_dead(letter) && (axis == kNone || axes_[axis].free);
  }
  AxisId axis_of(LetterId letter) const { return axis_of_letter_[letter]; }

 private:
  void collect(const Graph& graph, const CouplingOptions& options);
  void choose(unsigned shuffle_seed);

  const Lines& lines_;
  IdVector<AxisId, Axis> axes_;
  IdVector<LetterId, AxisId> axis_of_letter_;
};

}  // namespace parsimony
