// Windows that stand side by side, and grids of positions.
#include <array>
#include <span>

#include "parsimony/base/errors.h"
#include "parsimony/graph/operators/builder.h"
#include "parsimony/graph/operators/families.h"

namespace parsimony::operators {

/// x[n (c k) l] -> y[n c ..s]: windows of k elements each are added where they overlap
Shapes infer_col_to_im(const NodeView& view) {
  const Shape* x = view.in_shape(0);
  const HostTensor* image = view.constant(1);
  const HostTensor* block = view.constant(2);
  if (x == nullptr || x->size() != 3 || image == nullptr || block == nullptr) return Shapes(1);
  const int64_t window = element_count(block->ints);
  if (window <= 0 || (*x)[1] % window != 0) return Shapes(1);
  Shape y{(*x)[0], (*x)[1] / window};
  y.insert(y.end(), image->ints.begin(), image->ints.end());
  return {y};
}

Factors factor_col_to_im(const NodeView& view) {
  FactorBuilder builder(view);
  const Shape& x = known_shape(view, 0);
  const Shape* y = view.out_shape(0);
  if (y == nullptr || y->size() < 3) throw UnsupportedError("the image is not known");
  builder.tie(view.input(0), 0, view.output(0), 0);
  const int channel = builder.label((*y)[1], "c");
  const int window = builder.label(x[1] / (*y)[1], "k");
  builder.factors().labels.back().pin = "elements of a window";
  const std::array labels{channel, window};
  builder.term(view.input(0), 1, labels);
  builder.term(view.output(0), 1, std::span(labels).first(1));
  builder.pin(view.input(0), 2, "windows");
  for (int d = 2; d < static_cast<int>(y->size()); ++d) {
    builder.pin(view.output(0), d, "windows");
  }
  return builder.take();
}

/// Pictures of a usual size.
Shapes infer_image_decoder(const NodeView& view) {
  constexpr int64_t kSide = 224;
  if (!view.may_assume()) return Shapes(1);
  return {Shape{kSide, kSide, view.attr("pixel_format", "RGB") == "Grayscale" ? 1 : 3}};
}

/// size [n c ..s] -> grid [n ..s, number of spatial dimensions]
Shapes infer_affine_grid(const NodeView& view) {
  const HostTensor* size = view.constant(1);
  if (size == nullptr || size->ints.size() < 3) return Shapes(1);
  Shape grid{size->ints[0]};
  grid.insert(grid.end(), size->ints.begin() + 2, size->ints.end());
  grid.push_back(static_cast<int64_t>(size->ints.size()) - 2);
  return {grid};
}

}  // namespace parsimony::operators
