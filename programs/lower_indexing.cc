// Gathers and scatters; splitting and joining of tensors.
#include <algorithm>
#include <array>
#include <limits>

#include "parsimony/base/ranges.h"
#include "parsimony/programs/builder.h"
#include "parsimony/programs/call.h"
#include "parsimony/programs/sources.h"

namespace parsimony::programs {
namespace {

int64_t axis_of(Call& call) { return call.axis(call.integer(1), call.rank(call.tensor(0).value)); }

/// x[:, a, b, …]: the indices are broadcast, and their dimensions stand for the indexed ones; in
/// front if these are apart
void index_several(Call& call, const std::vector<Binding>& items,
                   const std::vector<int64_t>& axes) {
  bool alike = true;
  size_t places = 0;      // the rank of the indices
  ValueId zeros = kNone;  // of the shape of all
  for (const int64_t axis : axes) {
    places = std::max(places, call.rank(items[axis].value));
    alike = alike && call.shape(items[axis].value) == call.shape(items[axes.front()].value);
  }
  for (size_t i = 0; i < axes.size() && !alike; ++i) {
    const ValueId zero = call.out.emit("Mul", {{items[axes[i]].value}, {call.out.integer(0)}});
    zeros = i == 0 ? zero : call.out.emit("Add", {{zeros}, {zero}});
  }
  std::vector<Operand> columns;
  for (const int64_t axis : axes) {
    ValueId one = items[axis].value;
    if (!alike) one = call.out.emit("Add", {{one}, {zeros}});
    columns.push_back({call.out.emit("Unsqueeze", {{one}, {call.out.integers({-1})}})});
  }
  const ValueId locations = call.out.emit("Concat", columns, {{"axis", int64_t{-1}}});
  const ValueId x = call.tensor(0).value;
  const auto count = static_cast<int64_t>(axes.size());
  if (axes.back() == count - 1) return call.set_node("GatherND", {{x}, {locations}});
  std::vector<int64_t> first = axes;
  for (int64_t d = 0; std::cmp_less(d, call.rank(x)); ++d) {
    if (!contains(axes, d)) first.push_back(d);
  }
  const ValueId found = call.out.emit("GatherND", {{permuted(call, x, first)}, {locations}});
  const bool adjacent = axes.back() - axes.front() == count - 1;
  if (!adjacent) return call.set_result(found);
  std::vector<int64_t> back = successive(0, places + call.rank(x) - axes.size());
  const auto rest = back.begin() + static_cast<int64_t>(places);  // dimensions after the indices
  std::rotate(back.begin(), rest, rest + axes.front());
  call.set_result(permuted(call, found, back));
}

/// The dimensions for which a list has indices: integers, or one list of flags.
std::vector<int64_t> indexed_axes(const Call& call, const std::vector<Binding>& items) {
  std::vector<int64_t> axes;
  bool flags = false;
  for (size_t i = 0; i < items.size(); ++i) {
    if (items[i].is(BindingKind::kNone)) continue;
    call.require(items[i].is(BindingKind::kTensor));
    const DType dtype = call.out.graph().value(items[i].value).dtype;
    flags = flags || dtype == DType::kBool;
    call.require(dtype == DType::kInt64 || dtype == DType::kBool);
    axes.push_back(static_cast<int64_t>(i));
  }
  call.require(!axes.empty() && (!flags || axes.size() == 1));
  return axes;
}

/// Where flags that the model stores are set: the places are no tensor of the model.
ValueId places_of(Call& call, ValueId flags) {
  const HostTensor* known = call.out.known(flags);
  call.require(known != nullptr && known->dims.size() == 1);
  std::vector<int64_t> places;
  for (int64_t i = 0; i < known->count(); ++i) {
    if (known->ints[i] != 0) places.push_back(i);
  }
  return call.out.integers(std::move(places));
}

}  // namespace

/// index(x, [None, …, indices, None, …])
void lower_index(Call& call) {
  call.require(call.arg(1).is(BindingKind::kList));
  const std::vector<Binding>& items = *call.arg(1).items;
  const std::vector<int64_t> axes = indexed_axes(call, items);
  if (axes.size() > 1) return index_several(call, items, axes);
  const int64_t axis = axes.front();
  const ValueId indices = items[axis].value;
  if (call.out.graph().value(indices).dtype == DType::kBool) {
    call.out.pin_axis(call.tensor(0).value, axis);
    return call.set_node("Gather", {call.tensor(0), {places_of(call, indices)}}, {{"axis", axis}});
  }
  const Operand operand{indices, call.location(1, static_cast<int>(axis))};
  call.set_node("Gather", {call.tensor(0), operand}, {{"axis", axis}});
}

/// index_select(x, dim, indices), gather(x, dim, indices, sparse_grad)
void lower_gather(Call& call) {
  call.set_node(call.onnx, {call.tensor(0), call.tensor(2)}, {{"axis", axis_of(call)}});
}

/// one_hot(x, num_classes)
void lower_one_hot(Call& call) {
  const Element classes = call.element(1);
  call.require(classes.run_time == kNone && classes.fixed > 0);
  const Operand depth{call.out.integer(classes.fixed), classes.location};
  call.set_node("OneHot", {call.tensor(0), depth, {call.out.integers({0, 1})}},
                {{"axis", int64_t{-1}}});
}

/// scatter(x, dim, indices, src or number), scatter_add(x, dim, indices, src)
void lower_scatter(Call& call) {
  Attributes attributes{{"axis", axis_of(call)}};
  if (call.op == "scatter_add") attributes.with("reduction", std::string("add"));
  Operand updates{kNone};
  if (call.arg(3).is(BindingKind::kTensor)) {
    updates = call.tensor(3);
  } else {
    const ValueId sizes = call.out.emit("Shape", {{call.tensor(2).value}});
    const DType dtype = call.out.graph().value(call.tensor(0).value).dtype;
    updates = {filled_with(call, sizes, call.number(3),
                           dtype == DType::kUnknown ? DType::kFloat32 : dtype)};
  }
  call.set_node("ScatterElements", {call.tensor(0), call.tensor(2), updates},
                std::move(attributes));
}

/// scatter_reduce(x, dim, indices, src, reduce, include_self)
void lower_scatter_reduce(Call& call) {
  struct Reduction {
    const char* name;
    const char* onnx;
    double neutral;
  };
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  constexpr std::array kReductions{Reduction{"amax", "max", -kInfinity},
                                   Reduction{"amin", "min", kInfinity}, Reduction{"prod", "mul", 1},
                                   Reduction{"sum", "add", 0}};
  const auto found = std::ranges::find(kReductions, call.text(4), &Reduction::name);
  call.require(found != kReductions.end());
  ValueId x = call.tensor(0).value;
  const DType dtype = call.out.graph().value(x).dtype;
  const Operand indices = call.tensor(2);
  const Attribute axis = axis_of(call);
  if (!call.flag(5)) {  // what was there before does not count
    call.require(is_floating(dtype));
    const ValueId sizes = call.out.emit("Shape", {indices});
    const ValueId neutral = filled_with(call, sizes, found->neutral, dtype);
    x = call.out.emit("ScatterElements", {{x}, indices, {neutral}}, {{"axis", axis}});
  }
  call.set_node("ScatterElements", {{x}, indices, call.tensor(3)},
                {{"axis", axis}, {"reduction", std::string(found->onnx)}});
}

namespace {

/// Moves the dimension to the front, or back.
ValueId moved(Call& call, ValueId x, int64_t axis, bool back) {
  if (axis == 0) return x;
  std::vector<int64_t> perm = successive(0, call.rank(x));
  const auto first = perm.begin();
  back ? std::rotate(first, first + 1, first + axis + 1)
       : std::rotate(first, first + axis, first + axis + 1);
  return permuted(call, x, perm);
}

/// Writes rows at the indices of one dimension; `rows` have that dimension first.
void write_rows(Call& call, int64_t axis, const Operand& indices, ValueId rows,
                const std::string& reduction) {
  Operand x = call.tensor(0);
  if (axis != 0) x = {moved(call, x.value, axis, /*back=*/false)};
  call.require(call.rank(indices.value) == 1);
  const ValueId column = call.out.emit("Unsqueeze", {indices, {call.out.integers({1})}});
  const ValueId written =
      call.out.emit("ScatterND", {x, {column}, {rows}}, {{"reduction", reduction}});
  call.set_result(moved(call, written, axis, /*back=*/true));
}

}  // namespace

/// index_add(x, dim, indices, rows, alpha): adds rows at the indices; index_copy(x, dim, indices,
/// rows): replaces them
void lower_index_add(Call& call) {
  call.require(call.number(4, 1) == 1);
  const int64_t axis = axis_of(call);
  const ValueId rows = moved(call, call.tensor(3).value, axis, /*back=*/false);
  write_rows(call, axis, call.tensor(2), rows, call.op == "index_add" ? "add" : "none");
}

/// index_fill(x, dim, indices, number)
void lower_index_fill(Call& call) {
  const int64_t axis = axis_of(call);
  const ValueId x = moved(call, call.tensor(0).value, axis, /*back=*/false);
  const DType dtype = call.out.graph().value(x).dtype;
  call.require(is_floating(dtype));
  const ValueId rows = call.out.emit("Gather", {{x}, call.tensor(2)}, {{"axis", int64_t{0}}});
  const ValueId sizes = call.out.emit("Shape", {{rows}});
  write_rows(call, axis, call.tensor(2), filled_with(call, sizes, call.single(3), dtype), "none");
}

namespace {

/// x[:, flags] = values, where the same values, or a single number, are written at each place:
/// flags are of one or more dimensions, the first of which is `axis`.
void put_where(Call& call, int64_t axis, ValueId flags) {
  const ValueId x = call.tensor(0).value;
  const ValueId values = call.tensor(2).value;
  const int64_t after =
      static_cast<int64_t>(call.rank(x)) - axis - static_cast<int64_t>(call.rank(flags));
  const auto below = static_cast<int64_t>(call.rank(values)) - after;
  // A dimension of size 1 stands for all places.
  call.require(!call.flag(3) && (below <= 0 || (below == 1 && call.shape(values)[0] == 1)));
  if (after > 0) {
    const ValueId last = call.out.integers(successive(-after, 0));
    flags = call.out.emit("Unsqueeze", {{flags}, {last}});
  }
  call.set_node("Where", {{flags}, {values}, {x}});
}

}  // namespace

/// index_put(x, [None, …, indices, None, …], values, accumulate): one list of indices or flags
void lower_index_put(Call& call) {
  call.require(call.arg(1).is(BindingKind::kList));
  const std::vector<Binding>& items = *call.arg(1).items;
  const std::vector<int64_t> axes = indexed_axes(call, items);
  call.require(axes.size() == 1);
  const int64_t axis = axes.front();
  Operand indices{items[axis].value};
  if (call.out.graph().value(indices.value).dtype == DType::kBool) {
    if (call.out.known(indices.value) == nullptr) return put_where(call, axis, indices.value);
    indices = {places_of(call, indices.value)};
  }
  Shape written = call.shape(call.tensor(0).value);
  const Shape count = call.shape(indices.value);
  call.require(count.size() == 1);
  written[axis] = count[0];
  ValueId values = call.tensor(2).value;
  if (call.shape(values) != written) {
    const ValueId before = call.out.emit("Gather", {call.tensor(0), indices}, {{"axis", axis}});
    values = call.out.emit("Expand", {{values}, {call.out.emit("Shape", {{before}})}});
  }
  write_rows(call, axis, indices, moved(call, values, axis, /*back=*/false),
             call.flag(3) ? "add" : "none");
}

/// embedding_bag(table, indices, offsets, scale_grad, mode, sparse, weights, include_last,
/// padding): sums or means of rows, of the indices from one offset to the next
void lower_embedding_bag(Call& call) {
  constexpr int64_t kSum = 0;
  constexpr int64_t kMean = 1;
  const int64_t mode = call.integer(4, kSum);
  call.require(call.none(6) && !call.flag(7) && call.integer(8, -1) < 0);
  call.require(mode == kSum || mode == kMean);
  const Operand indices = call.tensor(1);
  const ValueId offsets = call.tensor(2).value;
  call.require(call.rank(indices.value) == 1 && call.rank(offsets) == 1);
  const ValueId count = call.out.size_of_dim(indices.value, 0);
  const ValueId places =
      call.out.emit("Range", {{call.out.integer(0)}, {count}, {call.out.integer(1)}});
  const ValueId next =
      call.out.slice({offsets}, 0, call.out.integers({1}), call.out.integers({kToEnd}));
  const ValueId last = call.out.emit("Unsqueeze", {{count}, {call.out.integers({0})}});
  const ValueId ends = call.out.emit("Concat", {{next}, {last}}, {{"axis", int64_t{0}}});
  const auto column = [&](ValueId x) {
    return Operand{call.out.emit("Unsqueeze", {{x}, {call.out.integers({1})}})};
  };
  const ValueId begun = call.out.emit("LessOrEqual", {column(offsets), {places}});
  const ValueId goes_on = call.out.emit("Greater", {column(ends), {places}});
  const ValueId in_bag = call.out.real(call.out.emit("And", {{begun}, {goes_on}}));
  const ValueId rows = call.out.emit("Gather", {call.tensor(0), indices}, {{"axis", int64_t{0}}});
  const ValueId sums = call.out.emit("MatMul", {{in_bag}, {rows}});
  if (mode == kSum) return call.set_result(sums);
  const ValueId members = call.out.emit("ReduceSum", {{in_bag}, {call.out.integers({1})}});
  const ValueId some = call.out.emit("Max", {{members}, {call.out.number(1)}});
  call.set_node("Div", {{sums}, {some}});
}

namespace {

constexpr int64_t kEnd = std::numeric_limits<int64_t>::max();
constexpr int64_t kMostParts = 256;

int64_t axis_of(Call& call, size_t i, int64_t fallback = 0) {
  return call.axis(call.integer(i, fallback), call.rank(call.tensor(0).value));
}

/// Sets the result to a list of the parts.
void set_list(Call& call, const std::vector<ValueId>& slices) {
  std::vector<Binding> items;
  const bool views = !call.op.starts_with("unsafe_");
  for (const ValueId part : slices) {
    if (views) call.out.alias(part, call.tensor(0).value);
    items.push_back(Binding::tensor(part));
  }
  call.set_result(0, Binding::list(std::move(items)));
}

void split(Call& call, int64_t axis, const std::vector<Element>& sizes, bool equal) {
  const ValueId operand = call.out.list_of(sizes);
  call.out.sources().constants[operand].equal_parts = equal;
  set_list(call, call.out.emit_many("Split", {call.tensor(0), {operand}}, sizes.size(),
                                    {{"axis", axis}}));
}

/// Pads circularly: elements beyond an end come from the other end.
void pad_round(Call& call, ValueId x, const std::vector<int64_t>& pairs) {
  const auto rank = static_cast<int64_t>(call.rank(x));
  for (size_t i = 0; i < pairs.size() / 2; ++i) {
    const int64_t axis = rank - 1 - static_cast<int64_t>(i);
    const int64_t before = pairs[2 * i];
    const int64_t after = pairs[2 * i + 1];
    call.require(before >= 0 && after >= 0);
    std::vector<Operand> slices{{x}};
    const auto from = [&](int64_t number) { return call.out.integers({number}); };
    if (before > 0)
      slices.insert(slices.begin(), {call.out.slice({x}, axis, from(-before), from(kEnd))});
    if (after > 0) slices.push_back({call.out.slice({x}, axis, from(0), from(after))});
    if (slices.size() > 1) x = call.out.emit("Concat", slices, {{"axis", axis}});
  }
  call.set_result(x);
}

/// Splits into equal parts, whose size may be a run-time number.
void split_by(Call& call, int64_t axis, const Element& size) {
  const HostTensor* known = call.out.known(size.run_time);
  call.require(known != nullptr && known->count() == 1 && !known->floating());
  const int64_t each = known->ints.front();
  const int64_t total = call.shape(call.tensor(0).value)[axis];
  call.require(each > 0 && total % each == 0 && total / each <= kMostParts);
  split(call, axis, std::vector<Element>(total / each, size), true);
}

/// Returns parts of `size`, of which the last may be smaller.
std::vector<Element> sizes_of(int64_t total, int64_t size) {
  std::vector<Element> sizes;
  for (int64_t begin = 0; begin < total; begin += size) {
    sizes.push_back({std::min(size, total - begin)});
  }
  return sizes;
}

/// Returns a list of one element, as Slice expects.
ValueId one(Call& call, const Element& element) { return call.out.list_of({element}); }

void cut(Call& call, int64_t axis, ValueId starts, ValueId ends, int64_t step) {
  const Operand x = call.tensor(0);
  call.set_view(call.out.slice(x, axis, starts, ends, step), x.value);
}

ValueId at_index(Call& call, int64_t axis, const Element& index) {
  const ValueId place = index.run_time == kNone ? call.out.integer(index.fixed) : index.run_time;
  const ValueId x = call.tensor(0).value;
  const ValueId result = call.out.emit("Gather", {{x}, {place, index.location}}, {{"axis", axis}});
  call.out.alias(result, x);
  return result;
}

/// Whether it has shape [0]. Only torch's cat accepts it with tensors of another rank.
bool is_void(Call& call, const Operand& tensor) {
  return call.out.shape(tensor.value) != nullptr && call.shape(tensor.value) == Shape{0};
}

/// Concatenates. Like torch, skips void tensors of any rank, but uses them for the result's type.
void join(Call& call, std::vector<Operand> tensors, int64_t axis) {
  const auto floating = [&](const Operand& tensor) {
    return is_floating(call.out.graph().value(tensor.value).dtype);
  };
  const auto skipped =
      std::stable_partition(tensors.begin(), tensors.end(),
                            [&](const Operand& tensor) { return !is_void(call, tensor); });
  bool real = false;
  if (skipped != tensors.begin()) {
    real = std::any_of(skipped, tensors.end(), floating);
    tensors.erase(skipped, tensors.end());
    real = real && std::ranges::none_of(tensors, floating);
  }
  if (call.out.is_complex(tensors[0].value)) axis = call.axis(axis, call.rank(tensors[0].value));
  const ValueId joined = call.out.emit("Concat", tensors, {{"axis", axis}});
  call.set_result(real ? call.out.real(joined) : joined);
}

}  // namespace

/// cat(tensors, dim)
void lower_cat(Call& call) { join(call, call.tensors(0), call.integer(1, 0)); }

/// hstack(tensors), vstack(tensors), dstack(tensors) of tensors that have the dimension
void lower_stack_along(Call& call) {
  const std::vector<Operand> tensors = call.tensors(0);
  const size_t rank = call.rank(tensors.front().value);
  const size_t axis = call.op == "vstack" ? 0 : call.op == "dstack" ? 2 : rank == 1 ? 0 : 1;
  call.require(rank > axis && (rank > 1 || call.op == "hstack"));
  join(call, tensors, static_cast<int64_t>(axis));
}

/// meshgrid(vectors, indexing): each along a separate dimension
void lower_meshgrid(Call& call) {
  const std::vector<Operand> vectors = call.tensors(0);
  std::vector<int64_t> dims = successive(0, vectors.size());
  if (!call.none(1) && call.text(1) == "xy" && dims.size() > 1) std::swap(dims[0], dims[1]);
  std::vector<int64_t> sizes(vectors.size());
  for (size_t i = 0; i < vectors.size(); ++i) {
    const Shape shape = call.shape(vectors[i].value);
    call.require(shape.size() <= 1);
    sizes[dims[i]] = shape.empty() ? 1 : shape[0];
  }
  std::vector<ValueId> grids;
  for (size_t i = 0; i < vectors.size(); ++i) {
    std::vector<int64_t> along(vectors.size(), 1);
    along[dims[i]] = -1;
    const ValueId apart = call.out.emit("Reshape", {vectors[i], {call.out.integers(along)}});
    grids.push_back(call.out.emit("Expand", {{apart}, {call.out.integers(sizes)}}));
  }
  std::vector<Binding> items;
  for (const ValueId grid : grids) items.push_back(Binding::tensor(grid));
  call.set_result(0, Binding::list(std::move(items)));
}

/// stack(tensors, dim)
void lower_stack(Call& call) {
  std::vector<Operand> rows;
  const std::vector<Operand> tensors = call.tensors(0);
  const int64_t axis = call.axis(call.integer(1, 0), call.rank(tensors.front().value) + 1);
  for (const Operand& tensor : tensors) {
    rows.push_back({call.out.emit("Unsqueeze", {tensor, {call.out.integers({axis})}})});
  }
  call.set_node("Concat", rows, {{"axis", axis}});
}

/// chunk(x, parts, dim)
void lower_chunk(Call& call) {
  const int64_t axis = axis_of(call, 2);
  const int64_t total = call.shape(call.tensor(0).value)[axis];
  const int64_t parts = call.integer(1);
  call.require(parts > 0 && total > 0);
  split(call, axis, sizes_of(total, (total + parts - 1) / parts), true);
}

/// split(x, size, dim), split_with_sizes(x, sizes, dim)
void lower_split(Call& call) {
  const int64_t axis = axis_of(call, 2);
  if (call.arg(1).is(BindingKind::kList)) return split(call, axis, call.elements(1), false);
  if (call.arg(1).is(BindingKind::kNumber)) return split_by(call, axis, call.element(1));
  const int64_t total = call.shape(call.tensor(0).value)[axis];
  const int64_t size = call.integer(1);
  call.require(size > 0 && total > 0);
  split(call, axis, sizes_of(total, size), false);
}

/// tensor_split(x, parts, dim), tensor_split(x, [starts of all but the first], dim)
void lower_tensor_split(Call& call) {
  const int64_t axis = axis_of(call, 2);
  const int64_t total = call.shape(call.tensor(0).value)[axis];
  std::vector<int64_t> begins{0};
  if (call.arg(1).is(BindingKind::kList)) {
    for (const int64_t begin : call.integers(1)) begins.push_back(begin);
  } else {
    const int64_t parts = call.integer(1);
    call.require(parts > 0);
    for (int64_t i = 1; i < parts; ++i) {
      begins.push_back(i * (total / parts) + std::min(i, total % parts));
    }
  }
  begins.push_back(total);
  std::vector<Element> sizes;
  for (size_t i = 0; i + 1 < begins.size(); ++i) {
    call.require(begins[i] < begins[i + 1]);
    sizes.push_back({begins[i + 1] - begins[i]});
  }
  split(call, axis, sizes, false);
}

/// unbind(x, dim)
void lower_unbind(Call& call) {
  const int64_t axis = axis_of(call, 1);
  const int64_t count = call.shape(call.tensor(0).value)[axis];
  call.require(count <= kMostParts);
  std::vector<ValueId> slices;
  for (int64_t i = 0; i < count; ++i) slices.push_back(at_index(call, axis, {i}));
  set_list(call, slices);
}

/// nonzero(x): a row per element that is not zero; where(x): a list of its columns
void lower_places(Call& call) {
  const ValueId places = call.out.emit("NonZero", {call.tensor(0)});
  if (call.op == "nonzero") return call.set_result(permuted(call, places, {1, 0}));
  std::vector<Binding> columns;
  for (int64_t d = 0; d < static_cast<int64_t>(call.rank(call.tensor(0).value)); ++d) {
    const ValueId column =
        call.out.emit("Gather", {{places}, {call.out.integer(d)}}, {{"axis", int64_t{0}}});
    columns.push_back(Binding::tensor(column));
  }
  call.set_result(0, Binding::list(std::move(columns)));
}

/// slice(x, dim, start, end, step)
void lower_slice(Call& call) {
  const int64_t axis = axis_of(call, 1);
  const Element start = call.none(2) ? Element{0, kNone, call.location(2)} : call.element(2);
  const Element end = call.none(3) ? Element{kEnd, kNone, call.location(3)} : call.element(3);
  const int64_t step = call.integer(4, 1);
  const bool from_start = start.run_time == kNone && start.fixed == 0;
  const bool to_end = end.run_time == kNone && end.fixed == kEnd;
  if (from_start && to_end && step == 1) return call.set_result(call.tensor(0).value);
  cut(call, axis, one(call, start), one(call, end), step);
}

/// slice_scatter(x, part, dim, start, end, step), select_scatter(x, part, dim, index): x with a
/// part replaced
void lower_part(Call& call) {
  const Operand x = call.tensor(0);
  const int64_t axis = axis_of(call, 2);
  const int64_t size = call.shape(x.value)[axis];
  const bool single = call.op == "select_scatter";
  const auto within = [&](int64_t at) {
    return std::clamp<int64_t>(at < 0 ? at + size : at, 0, size);
  };
  const Element start = call.none(3) ? Element{0, kNone, call.location(3)} : call.element(3);
  const Element end =
      single || call.none(4) ? Element{kEnd, kNone, call.location(4)} : call.element(4);
  const int64_t step = single ? 1 : call.integer(5, 1);
  call.require(start.run_time == kNone && end.run_time == kNone && step >= 1);
  Part part{.whole = x.value, .axis = axis, .begin = within(start.fixed), .end = within(end.fixed)};
  part.step = step;
  call.require(part.begin < part.end);
  if (single) {
    part.end = part.begin + 1;
    part.index = start.fixed;
  } else {
    part.starts = one(call, start);
    part.ends = one(call, end);
  }
  call.set_result(replaced(call.out, part, call.tensor(1).value));
}

/// roll(x, shifts, dims): along each dimension the end is moved before the beginning
void lower_roll(Call& call) {
  ValueId x = call.tensor(0).value;
  const std::vector<int64_t> shifts = call.integers(1);
  const std::vector<int64_t> dims = call.integers(2);
  call.require(shifts.size() == dims.size());
  for (size_t i = 0; i < dims.size(); ++i) {
    if (shifts[i] == 0) continue;
    const int64_t axis = call.axis(dims[i], call.rank(x));
    const ValueId at = call.out.integers({-shifts[i]}, {call.location(1, static_cast<int>(i))});
    call.out.sources().constants[at].negated = true;
    x = call.out.emit("Concat",
                      {{call.out.slice({x}, axis, at, call.out.integers({kEnd}))},
                       {call.out.slice({x}, axis, call.out.integers({0}), at)}},
                      {{"axis", axis}});
  }
  call.set_result(x);
}

/// diff(x, n, dim, prepend, append): the differences of neighbours
void lower_diff(Call& call) {
  const Operand x = call.tensor(0);
  call.require(call.integer(1, 1) == 1);
  call.require(call.out.graph().value(x.value).dtype != DType::kBool);
  const int64_t axis = call.axis(call.integer(2, -1), call.rank(x.value));
  std::vector<Operand> parts;
  if (!call.none(3)) parts.push_back(call.tensor(3));
  parts.push_back(x);
  if (!call.none(4)) parts.push_back(call.tensor(4));
  const Operand all{parts.size() == 1 ? x.value : call.out.emit("Concat", parts, {{"axis", axis}})};
  const auto part = [&](int64_t begin, int64_t end) {
    return Operand{call.out.slice(all, axis, call.out.integers({begin}), call.out.integers({end}))};
  };
  call.set_node("Sub", {part(1, kEnd), part(0, -1)});
}

/// flip(x, dims): reverses the order
void lower_flip(Call& call) {
  constexpr int64_t kBeginning = std::numeric_limits<int64_t>::min();
  const Operand x = call.tensor(0);
  std::vector<int64_t> axes = call.integers(1);
  for (int64_t& axis : axes) axis = call.axis(axis, call.rank(x.value));
  const auto every = [&](int64_t number) {
    return Operand{call.out.integers(std::vector<int64_t>(axes.size(), number))};
  };
  if (axes.empty()) return call.set_result(x.value);
  call.set_node("Slice", {x, every(-1), every(kBeginning), {call.out.integers(axes)}, every(-1)});
}

/// narrow(x, dim, start, length)
void lower_narrow(Call& call) {
  const Element start = call.element(2);
  const Element length = call.element(3);
  call.require(start.run_time == kNone && length.run_time == kNone && start.fixed >= 0);
  const int64_t axis = axis_of(call, 1);
  const ValueId starts = one(call, start);
  const ValueId ends = one(call, {start.fixed + length.fixed, kNone, length.location});
  call.out.sources().constants[ends].start_of = starts;
  cut(call, axis, starts, ends, 1);
}

/// select(x, dim, index)
void lower_select(Call& call) {
  call.set_result(at_index(call, axis_of(call, 1), call.element(2)));
}

/// pad(x, pads, mode, value), constant_pad_nd(x, pads, value), reflection_pad2d(x, pads),
/// replication_pad2d(x, pads): pairs from the last dimension backwards
void lower_pad(Call& call) {
  const Operand x = call.tensor(0);
  const size_t rank = call.rank(x.value);
  const std::vector<Element> pairs = call.elements(1);
  call.require(pairs.size() % 2 == 0 && pairs.size() <= 2 * rank);
  std::string mode = "constant";
  if (call.op == "pad") mode = call.text(2);
  if (call.op.starts_with("reflection")) mode = "reflect";
  if (call.op.starts_with("replication") || mode == "replicate") mode = "edge";
  if (mode == "circular") return pad_round(call, x.value, call.integers(1));
  call.require(mode == "constant" || mode == "reflect" || mode == "edge");
  const size_t all = rank + (call.out.is_complex(x.value) ? 1 : 0);
  std::vector<Element> pads(2 * all);
  for (size_t i = 0; i < pairs.size() / 2; ++i) {
    pads[rank - 1 - i] = pairs[2 * i];
    pads[all + rank - 1 - i] = pairs[2 * i + 1];
  }
  std::vector<Operand> inputs{x, {call.out.list_of(pads)}};
  const size_t value = call.op == "pad" ? 3 : 2;
  if (mode == "constant" && call.number(value, 0) != 0) {
    call.require(all == rank);
    inputs.push_back({call.out.number(call.number(value))});
  }
  call.set_node("Pad", inputs, {{"mode", mode}});
}

}  // namespace parsimony::programs
