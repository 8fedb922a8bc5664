// What data choose: elements that are read, or written, where indices say.
#include "parsimony/torch_io/script/lowerings_impl.h"

namespace parsimony::torch_io::script {
namespace {

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
    const bool whole = call.out.graph().value(call.tensor(0).value).dtype == DType::kInt64;
    const ValueId number =
        whole ? call.out.integer(call.integer(3)) : call.out.number(call.number(3));
    updates = {call.out.emit("Expand", {{number}, {sizes}})};
  }
  call.give_node("ScatterElements", {call.tensor(0), call.tensor(2), updates},
                 std::move(attributes));
}

/// index_add(x, 0, indices, rows, alpha): adds rows to those that the indices name
void lower_index_add(Call& call) {
  call.require(axis_of(call) == 0 && call.number(4, 1) == 1);
  const ValueId column = call.out.emit("Unsqueeze", {call.tensor(2), {call.out.integers({1})}});
  call.give_node("ScatterND", {call.tensor(0), {column}, call.tensor(3)},
                 {{"reduction", std::string("add")}});
}

}  // namespace parsimony::torch_io::script
