#include "parsimony/pruners/elements/pattern.h"

#include "parsimony/pruners/elements/view.h"

namespace parsimony::elements {

bool has_pattern(const Weight& weight, const Contraction& contraction, NmPattern pattern) {
  // Which outputs belong together does not matter for what one output reads.
  Contraction ungrouped = contraction;
  ungrouped.groups = 1;
  View view = make_view(weight, ungrouped, {});
  order_by_position(view);
  const Runs runs = runs_of(view);
  const Matrix matrix = gather(view, 0, to_host(weight).floats);
  for (int64_t c = 0; c < matrix.cols();) {
    const int64_t end = runs.group_end(c, pattern.m);
    const auto group = matrix.middleCols(c, end - c).array();
    if (((group != 0).cast<int>().rowwise().sum() > pattern.n).any()) return false;
    c = end;
  }
  return true;
}

}  // namespace parsimony::elements
