// Matrices of codes of a few bits.
#include "parsimony/graph/operators/families.h"
#include "parsimony/graph/operators/patch_view.h"

namespace parsimony::operators {

/// The length of the rows is an attribute, and the last block may be short.
void patch_matmul_of_bits(PatchView& view) {
  const Shape* a = view.after.in_shape(0);
  if (a == nullptr || a->empty()) return;
  view.set_attribute("K", {view.before.attr("K", a->back())}, {a->back()});
}

}  // namespace parsimony::operators
