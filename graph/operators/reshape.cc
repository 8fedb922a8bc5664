// Operators that give the same elements other dimensions, or another order.
#include <algorithm>

#include "parsimony/base/ranges.h"
#include "parsimony/graph/errors.h"
#include "parsimony/graph/operators/builder.h"
#include "parsimony/graph/operators/families.h"

namespace parsimony::operators {

// Reshape, Flatten, Squeeze, Unsqueeze: one rule. Drop the 1s, cut both shapes into segments of
// equal product, and each segment at the union of both sides' strides: [6, 4] -> [3, 8] has no
// common strides and is pinned, [12] -> [3, 4] gives the labels 3 and 4.
namespace {

struct Side {
  ValueId value;
  std::vector<int> dims;       // positions of the dimensions that are not 1
  std::vector<int64_t> sizes;  // their sizes
};

Side without_ones(ValueId value, const Shape& shape) {
  Side side{value, {}, {}};
  for (size_t d = 0; d < shape.size(); ++d) {
    if (shape[d] == 1) continue;
    side.dims.push_back(static_cast<int>(d));
    side.sizes.push_back(shape[d]);
  }
  return side;
}

/// Strides of the dimensions [begin, end) within their segment, and the segment's size, ascending.
void add_strides(const Side& side, size_t begin, size_t end, std::vector<int64_t>& strides) {
  int64_t stride = 1;
  for (size_t d = end; d-- > begin;) {
    strides.push_back(stride);
    stride *= side.sizes[d];
  }
  strides.push_back(stride);
}

void add_terms(const Side& side, size_t begin, size_t end, const std::vector<int64_t>& strides,
               const std::vector<int>& labels, FactorBuilder& builder) {
  int64_t low = 1;
  for (size_t d = end; d-- > begin;) {
    const int64_t high = low * side.sizes[d];
    std::vector<int> term;
    for (size_t s = strides.size() - 1; s-- > 0;) {
      if (strides[s] >= low && strides[s] < high) term.push_back(labels[s]);
    }
    builder.term(side.value, side.dims[d], term);
    low = high;
  }
}

void add_segment(const Side& a, size_t a_begin, size_t a_end, const Side& b, size_t b_begin,
                 size_t b_end, FactorBuilder& builder) {
  std::vector<int64_t> strides;
  add_strides(a, a_begin, a_end, strides);
  add_strides(b, b_begin, b_end, strides);
  sort_unique(strides);
  for (size_t i = 0; i + 1 < strides.size(); ++i) {
    if (strides[i + 1] % strides[i] == 0) continue;
    const std::string reason = "reshaped to sizes that share no strides";
    for (size_t d = a_begin; d < a_end; ++d) builder.pin(a.value, a.dims[d], reason);
    for (size_t d = b_begin; d < b_end; ++d) builder.pin(b.value, b.dims[d], reason);
    return;
  }
  std::vector<int> labels;
  for (size_t i = 0; i + 1 < strides.size(); ++i) {
    labels.push_back(builder.label(strides[i + 1] / strides[i]));
  }
  add_terms(a, a_begin, a_end, strides, labels, builder);
  add_terms(b, b_begin, b_end, strides, labels, builder);
}

std::vector<int64_t> axes_among(const NodeView& view, size_t rank) {
  std::vector<int64_t> axes = view.attr_or_input("axes", 1).value_or(std::vector<int64_t>{});
  for (int64_t& axis : axes) axis = normal_axis(view, axis, rank);
  return axes;
}

bool listed(const std::vector<int64_t>& axes, size_t axis) {
  return contains(axes, static_cast<int64_t>(axis));
}

/// Returns the shape that the integers in a Reshape's operand mean for an input of shape `x`.
Shape resolve(const NodeView& view, const Shape& x, const std::vector<int64_t>& asked) {
  Shape y = asked;
  const bool allow_zero = view.attr("allowzero", 0) != 0;
  std::optional<size_t> open;
  for (size_t i = 0; i < y.size(); ++i) {
    if (y[i] == 0 && !allow_zero && i < x.size()) y[i] = x[i];
    if (y[i] == -1 && !open) {
      open = i;
      y[i] = 1;
    }
  }
  const int64_t total = element_count(x);
  const int64_t known = element_count(y);
  if (open) y[*open] = known > 0 && total % known == 0 ? total / known : -1;
  return y;
}

/// The requested shape as a literal for this node alone that keeps dynamic sizes: 0 for a size
/// equal to the input's at the same position, -1 for one computed size. Empty if that is not
/// sufficient, or if the old literal has no other reader.
std::optional<Shape> own_shape(const PatchView& view, const Shape& asked, const Shape& requested,
                               const std::vector<bool>& right) {
  const std::vector<IntegerSource> sources = shared_sources(view.before, 1);
  if (sources.size() != asked.size() || view.before.attr("allowzero", 0) != 0) return std::nullopt;
  const Shape& x = *view.after.in_shape(0);
  const Shape& old_x = known_shape(view.before, 0);
  const Shape& old_y = *view.before.out_shape(0);
  Shape own = requested;
  for (size_t i = 0; i < own.size(); ++i) {
    if (!right[i] && sources[i] == IntegerSource::kProduct) return std::nullopt;
    if (i < x.size() && x[i] == requested[i] && old_x[i] == old_y[i]) {
      own[i] = 0;
    } else if (asked[i] == -1 || (right[i] && sources[i] != IntegerSource::kLiteral)) {
      own[i] = -1;
    }
  }
  if (std::ranges::count(own, -1) > 1) return std::nullopt;
  return own;
}

}  // namespace

Shapes infer_reshape(const NodeView& view) {
  const Shape* x = view.in_shape(0);
  const auto asked = view.attr_or_input("shape", 1);
  if (x == nullptr || !asked) return Shapes(1);
  const Shape y = resolve(view, *x, *asked);
  const bool bad = std::ranges::any_of(y, [](int64_t size) { return size < 0; });
  if (bad || element_count(y) != element_count(*x)) {
    throw errors::shape_mismatch(view.label(), "elements of the result",
                                 std::to_string(element_count(*x)), to_string(y));
  }
  return {y};
}

Shapes infer_flatten(const NodeView& view) {
  const Shape* x = view.in_shape(0);
  if (x == nullptr) return Shapes(1);
  int64_t axis = view.attr("axis", 1);
  if (axis < 0) axis += static_cast<int64_t>(x->size());
  Shape y{1, 1};
  for (size_t d = 0; d < x->size(); ++d) {
    int64_t& side = y[static_cast<int64_t>(d) < axis ? 0 : 1];
    side = element_count({side, (*x)[d]});
  }
  return {y};
}

Shapes infer_squeeze(const NodeView& view) {
  const Shape* x = view.in_shape(0);
  if (x == nullptr || (view.has_input(1) && view.constant(1) == nullptr)) return Shapes(1);
  const std::vector<int64_t> axes = axes_among(view, x->size());
  Shape y;
  for (size_t d = 0; d < x->size(); ++d) {
    const bool drop = axes.empty() ? (*x)[d] == 1 : listed(axes, d);
    if (!drop) y.push_back((*x)[d]);
    if (drop && (*x)[d] != 1) {
      throw errors::shape_mismatch(view.label(), "squeezed dimension", "1",
                                   std::to_string((*x)[d]));
    }
  }
  return {y};
}

Shapes infer_unsqueeze(const NodeView& view) {
  const Shape* x = view.in_shape(0);
  const auto raw = view.attr_or_input("axes", 1);
  if (x == nullptr || !raw) return Shapes(1);
  const size_t rank = x->size() + raw->size();
  const std::vector<int64_t> axes = axes_among(view, rank);
  Shape y;
  size_t next = 0;
  for (size_t d = 0; d < rank; ++d) {
    if (listed(axes, d)) {
      y.push_back(1);
    } else if (next < x->size()) {
      y.push_back((*x)[next++]);
    }
  }
  return {y};
}

Factors factor_reshape(const NodeView& view) {
  FactorBuilder builder(view);
  const Side a = without_ones(view.input(0), known_shape(view, 0));
  const Side b = without_ones(view.output(0), *view.out_shape(0));
  size_t i = 0;
  size_t j = 0;
  while (i < a.sizes.size() && j < b.sizes.size()) {
    const size_t a_begin = i;
    const size_t b_begin = j;
    int64_t left = a.sizes[i++];
    int64_t right = b.sizes[j++];
    while (left != right) {
      if (left < right ? i == a.sizes.size() : j == b.sizes.size()) break;
      if (left < right) {
        left *= a.sizes[i++];
      } else {
        right *= b.sizes[j++];
      }
    }
    if (left != right) throw UnsupportedError("the sizes of input and result disagree");
    add_segment(a, a_begin, i, b, b_begin, j, builder);
  }
  return builder.take();
}

void patch_reshape(PatchView& view) {
  const Shape* x = view.after.in_shape(0);
  const Shape* requested = view.after.out_shape(0);
  const auto asked = view.after.attr_or_input("shape", 1);
  if (x == nullptr || requested == nullptr || !asked) return;
  if (asked->size() == requested->size() && resolve(view.after, *x, *asked) == *requested) return;
  std::vector<bool> right(asked->size());
  for (size_t i = 0; i < asked->size(); ++i) {
    const int64_t value = (*asked)[i];
    right[i] = value == -1 || value == (*requested)[i] ||
               (value == 0 && i < x->size() && (*x)[i] == (*requested)[i]);
  }
  if (view.before.find("shape") != nullptr) {
    Shape to = *asked;
    for (size_t i = 0; i < to.size(); ++i) to[i] = right[i] ? to[i] : (*requested)[i];
    view.set_attribute("shape", *asked, to);
    return;
  }
  if (const auto own = own_shape(view, *asked, *requested, right)) {
    view.set_input(1, "shape", HostTensor::vector(*own));
    return;
  }
  patch_shape_operand(view, 1, "shape", *requested, right);
}

/// Without axes every 1 is squeezed, including a dimension that shrinks to 1: name the axes.
void patch_squeeze(PatchView& view) {
  const Shape& old = known_shape(view.before, 0);
  if (view.before.attr_or_input("axes", 1) || known_shape(view.after, 0) == old) return;
  std::vector<int64_t> axes;
  for (size_t d = 0; d < old.size(); ++d) {
    if (old[d] == 1) axes.push_back(static_cast<int64_t>(d));
  }
  if (view.before.opset() < 13) {
    view.set_attribute("axes", {}, axes);
  } else {
    view.set_input(1, "axes", HostTensor::vector(axes));
  }
}

// Transpose: dimension d of the result is dimension perm[d] of the input.
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
