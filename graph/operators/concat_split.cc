// Operators that join tensors or take them apart.
#include <algorithm>
#include <optional>

#include "parsimony/base/errors.h"
#include "parsimony/graph/errors.h"
#include "parsimony/graph/operators/builder.h"
#include "parsimony/graph/operators/families.h"

namespace parsimony::operators {

// Concat: y[begin_j + i] = x_j[i] along one axis; the other dimensions are the same everywhere.
namespace {

/// Operands that are joined. QLinearConcat has the result's scale and zero point in front, and each
/// operand's own behind it.
std::vector<int> joined(const NodeView& view) {
  const bool quantised = view.node().op == "QLinearConcat";
  std::vector<int> operands;
  for (int i = quantised ? 2 : 0; i < view.inputs(); i += quantised ? 3 : 1) operands.push_back(i);
  return operands;
}

}  // namespace

Shapes infer_concat(const NodeView& view) {
  std::optional<Shape> y;
  for (const int i : joined(view)) {
    const Shape* x = view.in_shape(i);
    if (x == nullptr) return Shapes(1);
    if (!y) {
      y = *x;
      continue;
    }
    const auto axis = static_cast<size_t>(normal_axis(view, view.attr("axis", 1), y->size()));
    Shape expected = *y;
    if (x->size() == y->size()) expected[axis] = (*x)[axis];
    if (*x != expected) {
      throw errors::shape_mismatch(view.label(),
                                   "operand " + std::to_string(i) + " of the concatenation",
                                   to_string(expected), to_string(*x));
    }
    (*y)[axis] += (*x)[axis];
  }
  return {y};
}

Factors factor_concat(const NodeView& view) {
  FactorBuilder builder(view);
  const ValueId y = view.output(0);
  const std::vector<int> operands = joined(view);
  if (operands.empty()) throw UnsupportedError("nothing is joined");
  const Shape& first = known_shape(view, operands[0]);
  const size_t rank = first.size();
  const int axis = normal_axis(view, view.attr("axis", 1), rank);
  for (size_t d = 0; d < rank; ++d) {
    if (static_cast<int>(d) == axis) continue;
    const int label = builder.label(first[d]);
    builder.term(y, static_cast<int>(d), {{label}});
    for (const int i : operands) builder.term(view.input(i), static_cast<int>(d), {{label}});
  }
  int64_t begin = 0;
  for (const int i : operands) {
    const int64_t size = known_shape(view, i)[axis];
    builder.map(view.input(i), axis, y, axis, {{0, begin, size}});
    begin += size;
  }
  return builder.take();
}

// Split: y_j[i] = x[begin_j + i] along one axis. Equal parts may become unequal, so a pruned Split
// always names its sizes.
namespace {

std::vector<int64_t> sizes_of(const NodeView& view, int64_t total) {
  if (const auto sizes = view.attr_or_input("split", 1); sizes && !sizes->empty()) return *sizes;
  const auto parts = static_cast<int64_t>(view.outputs());
  if (view.opset() < 18 && total % parts != 0) {  // since then the last part may be smaller
    throw errors::shape_mismatch(view.label(), "size to split",
                                 "a multiple of " + std::to_string(parts), std::to_string(total));
  }
  const int64_t size = (total + parts - 1) / parts;
  std::vector<int64_t> sizes(static_cast<size_t>(parts), size);
  sizes.back() = total - size * (parts - 1);
  return sizes;
}

}  // namespace

Shapes infer_split(const NodeView& view) {
  Shapes shapes(static_cast<size_t>(view.outputs()));
  const Shape* x = view.in_shape(0);
  if (x == nullptr || (view.has_input(1) && view.constant(1) == nullptr)) return shapes;
  const auto axis = static_cast<size_t>(normal_axis(view, view.attr("axis", 0), x->size()));
  const std::vector<int64_t> sizes = sizes_of(view, (*x)[axis]);
  int64_t sum = 0;
  for (const int64_t size : sizes) sum += size;
  if (sizes.size() != shapes.size() || sum != (*x)[axis]) {
    throw errors::shape_mismatch(view.label(), "sum of the parts", std::to_string((*x)[axis]),
                                 std::to_string(sum));
  }
  for (size_t i = 0; i < sizes.size(); ++i) {
    shapes[i] = *x;
    (*shapes[i])[axis] = sizes[i];
  }
  return shapes;
}

Factors factor_split(const NodeView& view) {
  FactorBuilder builder(view);
  const ValueId x = view.input(0);
  const Shape& shape = known_shape(view, 0);
  const int axis = normal_axis(view, view.attr("axis", 0), shape.size());
  for (size_t d = 0; d < shape.size(); ++d) {
    if (static_cast<int>(d) == axis) continue;
    const int label = builder.label(shape[d]);
    builder.term(x, static_cast<int>(d), {{label}});
    for (int i = 0; i < view.outputs(); ++i) {
      if (view.output(i) != kNone) builder.term(view.output(i), static_cast<int>(d), {{label}});
    }
  }
  const std::vector<int64_t> sizes = sizes_of(view, shape[axis]);
  int64_t begin = 0;
  for (int i = 0; i < view.outputs(); ++i) {
    const int64_t size = sizes[i];
    if (view.output(i) != kNone) builder.map(x, axis, view.output(i), axis, {{begin, 0, size}});
    begin += size;
  }
  return builder.take();
}

void patch_split(PatchView& view) {
  const Shape& before = known_shape(view.before, 0);
  const Shape& after = known_shape(view.after, 0);
  const auto axis =
      static_cast<size_t>(normal_axis(view.before, view.before.attr("axis", 0), before.size()));
  // Sizes that are computed may shrink where the axis does not.
  const bool computed = view.before.has_input(1) && view.before.computed(view.before.input(1));
  if (before[axis] == after[axis] && !computed) return;
  std::vector<int64_t> sizes;
  for (int i = 0; i < view.after.outputs(); ++i) {
    if (view.after.out_shape(i) == nullptr)
      throw UnsupportedError("a part of the split is not read");
    sizes.push_back((*view.after.out_shape(i))[axis]);
  }
  if (view.before.opset() < 13) {
    view.set_attribute("split", view.before.attrs("split"), sizes);
    return;
  }
  view.set_attr_or_input("split", 1, sizes);
  if (view.before.find("num_outputs") != nullptr) {  // opset 18 wants one or the other
    view.set_attribute("num_outputs", {view.before.attr("num_outputs", 0)}, {});
  }
}

// Lists of tensors. The analysis sees a list as one of its tensors, which all have the same shape:
// what leaves one leaves all. Of a list of tensors of several shapes no shape is known.
namespace {

constexpr int64_t kLongest = 1 << 20;
constexpr int kMostSteps = 1000;       // through which a list is followed back
constexpr int64_t kAssumedLength = 2;  // of a list that a loop makes

/// The axis, the sizes of the parts along it, and whether the axis stays.
struct Parts {
  int axis = 0;
  int64_t size = 0;
  int64_t count = 0;
  bool keeps_axis = true;
};

/// Empty unless all parts have one size.
std::optional<Parts> parts_of(const NodeView& view) {
  const Shape* x = view.in_shape(0);
  if (x == nullptr || x->empty()) return std::nullopt;
  Parts parts{.axis = normal_axis(view, view.attr("axis", 0), x->size())};
  const int64_t size = (*x)[parts.axis];
  if (!view.has_input(1)) {
    parts.size = 1;
    parts.count = size;
    parts.keeps_axis = view.attr("keepdims", 1) != 0;
    return parts;
  }
  const HostTensor* split = view.constant(1);
  if (split == nullptr || split->ints.empty()) return std::nullopt;
  parts.size = split->ints.front();
  const bool is_list = !split->dims.empty();
  const bool all_same =
      std::ranges::all_of(split->ints, [&](int64_t n) { return n == parts.size; });
  if (parts.size <= 0 || !all_same || size % parts.size != 0) return std::nullopt;
  parts.count = is_list ? static_cast<int64_t>(split->ints.size()) : size / parts.size;
  return parts;
}

std::optional<std::pair<int64_t, ValueId>> added_by_loop(const NodeView& loop, ValueId list);

/// Returns how many more tensors a list holds than the list `since` from which it was made; than
/// none if that is kNone.
std::optional<int64_t> length_since(const NodeView& reader, ValueId list, ValueId since) {
  int64_t more = 0;
  for (int steps = 0; steps < kMostSteps; ++steps) {
    if (since != kNone && list == since) return more;
    const NodeId producer = list == kNone ? NodeId() : reader.graph().value(list).producer;
    if (producer == kNone) return std::nullopt;
    const NodeView view = reader.beside(producer);
    const InferFn rule = schema_of(view.node()).infer;
    if (rule == infer_sequence_construct) return more + view.inputs();
    if (rule == infer_sequence_empty) return more;
    if (rule == infer_split_to_sequence) {
      const auto parts = parts_of(view);
      return parts ? std::optional(more + parts->count) : std::nullopt;
    }
    if (rule == infer_control) {
      const auto added = added_by_loop(view, list);
      if (!added) return std::nullopt;
      more += added->first;
      list = added->second;
      continue;
    }
    if (rule != infer_sequence_insert && rule != infer_sequence_erase) return std::nullopt;
    more += rule == infer_sequence_insert ? 1 : -1;
    list = view.input(0);
  }
  return std::nullopt;
}

std::optional<int64_t> length_of(const NodeView& reader, ValueId list) {
  return length_since(reader, list, kNone);
}

/// Returns how many tensors all turns of a loop add to a list, and the list that it begins with.
std::optional<std::pair<int64_t, ValueId>> added_by_loop(const NodeView& loop, ValueId list) {
  constexpr int kBeforeStates = 2;
  const auto states = carried(loop);
  for (size_t i = 0; i < states.size(); ++i) {
    const int state = static_cast<int>(i);
    if (loop.output(state) != list) continue;
    const auto in_a_turn = length_since(loop, states[i].second, states[i].first);
    if (!in_a_turn || *in_a_turn > kLongest || turns_of(loop) > kLongest) return std::nullopt;
    return std::pair(*in_a_turn * turns_of(loop), loop.input(kBeforeStates + state));
  }
  return std::nullopt;
}

}  // namespace

/// All operands, which have one shape.
Shapes infer_sequence_construct(const NodeView& view) {
  const Shape* first = view.in_shape(0);
  if (first == nullptr) return Shapes(1);
  for (int i = 1; i < view.inputs(); ++i) {
    const Shape* other = view.in_shape(i);
    if (other == nullptr || *other != *first) return Shapes(1);
  }
  return {*first};
}

/// A list of nothing has no tensor to be seen as; what is empty stands for it.
Shapes infer_sequence_empty(const NodeView& /*view*/) { return {Shape{0}}; }

Shapes infer_sequence_erase(const NodeView& view) { return infer_same(view); }

Shapes infer_sequence_insert(const NodeView& view) {
  const Shape* list = view.in_shape(0);
  const Shape* added = view.in_shape(1);
  if (added == nullptr) return Shapes(1);
  const bool is_empty = list != nullptr && *list == Shape{0};  // also where a loop begins
  if (is_empty || length_of(view, view.input(0)) == 0) return {*added};
  return {list != nullptr && *list == *added ? std::optional(*added) : std::nullopt};
}

Shapes infer_sequence_length(const NodeView& /*view*/) { return {Shape{}}; }

/// Ties every dimension of all tensors of the list.
Factors factor_sequence(const NodeView& view) {
  FactorBuilder builder(view);
  const Shape* y = view.out_shape(0);
  if (y == nullptr) throw UnsupportedError("its tensors have several shapes");
  for (size_t d = 0; d < y->size(); ++d) {
    const int dim = static_cast<int>(d);
    const int label = builder.label((*y)[d]);
    builder.term(view.output(0), dim, {{label}});
    for (int i = 0; i < view.inputs(); ++i) {
      const Shape* x = view.in_shape(i);
      if (x != nullptr && *x == *y) builder.term(view.input(i), dim, {{label}});
    }
  }
  return builder.take();
}

Shapes infer_split_to_sequence(const NodeView& view) {
  const auto parts = parts_of(view);
  if (!parts) return Shapes(1);
  Shape y = *view.in_shape(0);
  if (parts->keeps_axis) {
    y[parts->axis] = parts->size;
  } else {
    y.erase(y.begin() + parts->axis);
  }
  return {y};
}

Factors factor_split_to_sequence(const NodeView& view) {
  FactorBuilder builder(view);
  const auto parts = parts_of(view);
  if (!parts) throw UnsupportedError("its parts are of several sizes");
  const int rank = static_cast<int>(known_shape(view, 0).size());
  builder.pin(view.input(0), parts->axis, "parts of a list");
  if (parts->keeps_axis) builder.pin(view.output(0), parts->axis, "parts of a list");
  for (int d = 0; d < rank; ++d) {
    if (d == parts->axis) continue;
    const int moved = !parts->keeps_axis && d > parts->axis ? d - 1 : d;
    builder.tie(view.input(0), d, view.output(0), moved);
  }
  return builder.take();
}

Shapes infer_concat_from_sequence(const NodeView& view) {
  const Shape* x = view.in_shape(0);
  auto length = length_of(view, view.input(0));
  if (!length && view.may_assume()) length = kAssumedLength;
  if (x == nullptr || !length || *length < 0 || *length > kLongest) return Shapes(1);
  const bool is_new = view.attr("new_axis", 0) != 0;
  Shape y = *x;
  const int axis = normal_axis(view, view.attr("axis", 0), y.size() + (is_new ? 1 : 0));
  if (is_new) {
    y.insert(y.begin() + axis, *length);
  } else if (y[axis] <= kLongest) {
    y[axis] *= *length;
  } else {
    return Shapes(1);
  }
  return {y};
}

Factors factor_concat_from_sequence(const NodeView& view) {
  FactorBuilder builder(view);
  const int rank = static_cast<int>(known_shape(view, 0).size());
  const bool is_new = view.attr("new_axis", 0) != 0;
  const int axis =
      normal_axis(view, view.attr("axis", 0), static_cast<size_t>(rank + (is_new ? 1 : 0)));
  builder.pin(view.output(0), axis, "a list of tensors");
  for (int d = 0; d < rank; ++d) {
    if (!is_new && d == axis) {
      builder.pin(view.input(0), d, "a list of tensors");
    } else {
      builder.tie(view.input(0), d, view.output(0), is_new && d >= axis ? d + 1 : d);
    }
  }
  return builder.take();
}

}  // namespace parsimony::operators
