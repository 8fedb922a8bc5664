// What data choose: elements that are read, or written, where indices say.
#include <algorithm>
#include <limits>

#include "parsimony/base/ranges.h"
#include "parsimony/torch_io/script/lowerings_impl.h"

namespace parsimony::torch_io::script {
namespace {

constexpr int64_t kToEnd = std::numeric_limits<int64_t>::max();

int64_t axis_of(Call& call) { return call.axis(call.integer(1), call.rank(call.tensor(0).value)); }

/// x[a, b, …], where all have one shape
void index_first(Call& call, const std::vector<Binding>& items, const std::vector<int64_t>& axes) {
  std::vector<Operand> columns;
  for (size_t i = 0; i < axes.size(); ++i) {
    const ValueId one = items[i].value;
    call.require(axes[i] == static_cast<int64_t>(i));
    call.require(call.shape(one) == call.shape(items.front().value));
    columns.push_back({call.out.emit("Unsqueeze", {{one}, {call.out.integers({-1})}})});
  }
  const ValueId locations = call.out.emit("Concat", columns, {{"axis", int64_t{-1}}});
  call.give_node("GatherND", {call.tensor(0), {locations}});
}

}  // namespace

/// index(x, [None, …, indices, None, …]): one list of indices, or one for each of the first
/// dimensions
void lower_index(Call& call) {
  call.require(call.arg(1).is(BindingKind::kList));
  const std::vector<Binding>& items = *call.arg(1).items;
  std::vector<int64_t> axes;
  for (size_t i = 0; i < items.size(); ++i) {
    if (items[i].is(BindingKind::kNone)) continue;
    call.require(items[i].is(BindingKind::kTensor));
    call.require(call.out.graph().value(items[i].value).dtype == DType::kInt64);
    axes.push_back(static_cast<int64_t>(i));
  }
  call.require(!axes.empty());
  if (axes.size() > 1) return index_first(call, items, axes);
  const int64_t axis = axes.front();
  const ValueId indices = items[axis].value;
  const Operand operand{indices, call.location(1, static_cast<int>(axis))};
  call.give_node("Gather", {call.tensor(0), operand}, {{"axis", axis}});
}

/// index_select(x, dim, indices), gather(x, dim, indices, sparse_grad)
void lower_gather(Call& call) {
  call.give_node(call.onnx, {call.tensor(0), call.tensor(2)}, {{"axis", axis_of(call)}});
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
  call.give_node("ScatterElements", {call.tensor(0), call.tensor(2), updates},
                 std::move(attributes));
}

namespace {

/// The dimension first, or back in its place.
ValueId moved(Call& call, ValueId x, int64_t axis, bool back) {
  if (axis == 0) return x;
  std::vector<int64_t> perm = successive(0, call.rank(x));
  const auto first = perm.begin();
  back ? std::rotate(first, first + 1, first + axis + 1)
       : std::rotate(first, first + axis, first + axis + 1);
  return permuted(call, x, perm);
}

/// x with these rows at the indices of one dimension; `rows` have that dimension first.
void write_rows(Call& call, int64_t axis, ValueId rows, const std::string& reduction) {
  const ValueId x = moved(call, call.tensor(0).value, axis, /*back=*/false);
  call.require(call.rank(call.tensor(2).value) == 1);
  const ValueId column = call.out.emit("Unsqueeze", {call.tensor(2), {call.out.integers({1})}});
  const ValueId written =
      call.out.emit("ScatterND", {{x}, {column}, {rows}}, {{"reduction", reduction}});
  call.give(moved(call, written, axis, /*back=*/true));
}

}  // namespace

/// index_add(x, dim, indices, rows, alpha): adds rows to those that the indices name;
/// index_copy(x, dim, indices, rows): puts them there
void lower_index_add(Call& call) {
  call.require(call.number(4, 1) == 1);
  const int64_t axis = axis_of(call);
  const ValueId rows = moved(call, call.tensor(3).value, axis, /*back=*/false);
  write_rows(call, axis, rows, call.op == "index_add" ? "add" : "none");
}

/// index_fill(x, dim, indices, number)
void lower_index_fill(Call& call) {
  const int64_t axis = axis_of(call);
  const ValueId x = moved(call, call.tensor(0).value, axis, /*back=*/false);
  const DType dtype = call.out.graph().value(x).dtype;
  call.require(is_floating(dtype));
  const ValueId rows = call.out.emit("Gather", {{x}, call.tensor(2)}, {{"axis", int64_t{0}}});
  const ValueId sizes = call.out.emit("Shape", {{rows}});
  write_rows(call, axis, filled_with(call, sizes, call.single(3), dtype), "none");
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
  if (mode == kSum) return call.give(sums);
  const ValueId members = call.out.emit("ReduceSum", {{in_bag}, {call.out.integers({1})}});
  const ValueId some = call.out.emit("Max", {{members}, {call.out.number(1)}});
  call.give_node("Div", {{sums}, {some}});
}

}  // namespace parsimony::torch_io::script
