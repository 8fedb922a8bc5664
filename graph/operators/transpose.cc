// Transpose: dimension d of the result is dimension perm[d] of the input.
#include "parsimony/graph/operators/builder.h"
#include "parsimony/graph/operators/families.h"

namespace parsimony::operators {
namespace {

std::vector<int> permutation(const NodeView& view, size_t rank) {
  const std::vector<int64_t> perm = view.attrs("perm");
  std::vector<int> result;
  for (size_t d = 0; d < rank; ++d) {
    result.push_back(perm.empty() ? static_cast<int>(rank - 1 - d)
                                  : normal_axis(view, d < perm.size() ? perm[d] : -1, rank));
  }
  return result;
}

}  // namespace

Shapes infer_transpose(const NodeView& view) {
  const Shape* x = view.in_shape(0);
  if (x == nullptr) return Shapes(1);
  Shape y;
  for (const int from : permutation(view, x->size())) y.push_back((*x)[from]);
  return {y};
}

Factors factor_transpose(const NodeView& view) {
  FactorBuilder builder(view);
  const std::vector<int> perm = permutation(view, known_shape(view, 0).size());
  for (size_t d = 0; d < perm.size(); ++d) {
    builder.tie(view.input(0), perm[d], view.output(0), static_cast<int>(d));
  }
  return builder.take();
}

}  // namespace parsimony::operators
