// Operators that keep a shape but treat some of its axes by position: what they write to or order
// may not shrink, the other axes pass.
#include <algorithm>

#include "parsimony/graph/errors.h"
#include "parsimony/graph/rules/builder.h"
#include "parsimony/graph/rules/rules.h"

namespace parsimony::rules {
namespace {

/// Ties the dimensions of input 0 and the output, but for those that `positional` names.
void pass(const NodeView& view, const std::vector<bool>& positional, const std::string& reason,
          FactorBuilder& builder) {
  for (size_t d = 0; d < positional.size(); ++d) {
    const int dim = static_cast<int>(d);
    if (positional[d]) {
      builder.pin(view.input(0), dim, reason);
      builder.pin(view.output(0), dim, reason);
    } else {
      builder.tie(view.input(0), dim, view.output(0), dim);
    }
  }
}

}  // namespace

Shapes infer_same(const NodeView& view) {
  const Shape* x = view.in_shape(0);
  return {x == nullptr ? std::nullopt : std::optional(*x)};
}

Shapes infer_gather_elements(const NodeView& view) {
  const Shape* indices = view.in_shape(1);
  return {indices == nullptr ? std::nullopt : std::optional(*indices)};
}

/// y = x, but y[index[j]] = update[j]: the k dimensions that an index names are positions.
Factors factor_scatter_nd(const NodeView& view) {
  FactorBuilder builder(view);
  const size_t rank = known_shape(view, 0).size();
  const Shape& indices = known_shape(view, 1);
  const auto k = static_cast<size_t>(indices.empty() ? 0 : indices.back());
  if (indices.empty() || k > rank) throw UnsupportedError("an index does not fit the rank");
  std::vector<bool> positional(rank, false);
  std::fill_n(positional.begin(), k, true);
  pass(view, positional, "written at given indices", builder);
  const size_t batch = indices.size() - 1;
  for (size_t d = k; d < rank; ++d) {
    builder.tie(view.input(0), static_cast<int>(d), view.input(2), static_cast<int>(batch + d - k));
  }
  return builder.take();
}

Factors factor_cum_sum(const NodeView& view) {
  FactorBuilder builder(view);
  const size_t rank = known_shape(view, 0).size();
  const HostTensor* axis = view.constant(1);
  const bool known = axis != nullptr && axis->ints.size() == 1;
  std::vector<bool> positional(rank, !known);
  if (known) {
    positional[static_cast<size_t>(normal_axis(view, axis->ints[0], rank))] = true;
  }
  pass(view, positional, "summed in order", builder);
  return builder.take();
}

Factors factor_trilu(const NodeView& view) {
  FactorBuilder builder(view);
  std::vector<bool> positional(known_shape(view, 0).size(), false);
  std::fill(positional.end() - std::min<std::ptrdiff_t>(2, std::ssize(positional)),
            positional.end(), true);
  pass(view, positional, "a triangle is cut out", builder);
  return builder.take();
}

/// All positions: the rule only tells the shape.
Factors factor_positional(const NodeView& view) {
  return pin_operands(view, view.node().op + " indexes every axis");
}

}  // namespace parsimony::rules
