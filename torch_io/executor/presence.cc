// Presence of results: which elements exist in the small network. Found by running the kernels
// themselves on zeros and ones, without knowledge of axes or groups.
#include <algorithm>

#include "parsimony/base/ranges.h"
#include "parsimony/torch_io/executor/operators_impl.h"
#include "parsimony/torch_io/executor/weights_impl.h"

namespace parsimony::executor {
namespace {

/// Whether it is a data operand. The last bit also stands for all later operands, as of Concat.
bool is_data(const Operator& op, size_t operand) {
  return ((op.data >> std::min<size_t>(operand, 31)) & 1U) != 0;
}

/// Runs the kernel on presences in place of the data; other operands are unchanged.
Tensors run_on_presence(const Operator& op, const Call& call, Kernel* kernel) {
  Tensors operands = call.inputs;
  for (size_t i = 0; i < operands.size(); ++i) {
    if (is_data(op, i) && call.has_in(i)) operands[i] = call.presence_numbers(i);
  }
  return kernel(call.on(std::move(operands)));
}

Tensors as_flags(Tensors numbers) {
  for (at::Tensor& each : numbers) {
    if (each.defined()) each = each > 0.5;
  }
  return numbers;
}

/// Sums products of the data operands, with all other operands absent.
at::Tensor products(const Operator& op, const Call& call, bool everything) {
  Tensors operands(call.inputs.size());
  for (size_t i = 0; i < operands.size(); ++i) {
    if (!is_data(op, i) || !call.has_in(i)) continue;
    operands[i] = call.presence_numbers(i);
    if (everything) operands[i] = at::ones_like(operands[i]);
  }
  return op.kernel(call.on(std::move(operands))).front();
}

/// Returns [d h] for an operand whose rows are the gates of d directions' hidden units.
at::Tensor units(const at::Tensor& present, int64_t hidden, bool directed) {
  const int64_t directions = directed ? present.size(0) : 1;
  const int64_t columns = present.dim() == (directed ? 3 : 2) ? present.size(-1) : 1;
  return present.reshape({directions, -1, hidden, columns}).to(at::kFloat).amax({1, 3}) > 0.5;
}

}  // namespace

Tensors elementwise(const Operator& /*op*/, const Call& call, const Tensors& outputs) {
  at::Tensor all;
  for (size_t i = 0; i < call.inputs.size(); ++i) {
    all = both(all, call.presence(i));
  }
  Tensors results;
  for (const at::Tensor& y : outputs) {
    const bool fits = all.defined() && y.defined() && at::is_expandable_to(all.sizes(), y.sizes());
    results.push_back(fits ? all.expand(y.sizes()) : at::Tensor());
  }
  return results;
}

Tensors as_first(const Operator& /*op*/, const Call& call, const Tensors& outputs) {
  const at::Tensor& p = call.presence(0);
  Tensors results;
  for (const at::Tensor& y : outputs) {
    const bool fits = p.defined() && y.defined() && p.sizes() == y.sizes();
    results.push_back(fits ? p : at::Tensor());
  }
  return results;
}

Tensors moved(const Operator& op, const Call& call, const Tensors& /*outputs*/) {
  const StoredWeight* weight = op.data == 1 ? call.weight(0) : nullptr;
  if (weight == nullptr) return as_flags(run_on_presence(op, call, op.kernel));
  Tensors all;  // per axis, to avoid a presence of the weight's size
  for (const auto& [axis, stays] : weight->kept) {
    Call each = call.on(call.inputs);
    each.inputs[0] = weight->spread(axis, stays.to(at::kFloat));
    const Tensors found = as_flags(op.kernel(each));
    all.resize(found.size());
    for (size_t i = 0; i < found.size(); ++i) {
      all[i] = both(all[i], found[i]);
    }
  }
  return all;
}

Tensors contracted(const Operator& op, const Call& call, const Tensors& /*outputs*/) {
  return {products(op, call, false) != 0};  // factors such as Gemm's alpha have any sign
}

Tensors multiplied(const Operator& op, const Call& call, const Tensors& outputs) {
  const StoredWeight* matrix = call.weight(1);
  const bool known = matrix != nullptr || !call.presence(1).defined();
  if (!known || call.in(1).dim() != 2 || call.in(0).dim() < 2) {
    return contracted(op, call, outputs);
  }
  const at::Tensor rows = matrix != nullptr ? matrix->flags(0) : at::Tensor();
  const at::Tensor columns = matrix != nullptr ? matrix->flags(1) : at::Tensor();
  at::Tensor x = call.presence(0);
  if (rows.defined()) x = x.defined() ? x.logical_and(rows) : rows.expand(call.in(0).sizes());
  at::Tensor all = x.defined() ? x.any(-1, true).expand(outputs[0].sizes()) : x;
  if (columns.defined()) {
    all = all.defined() ? all.logical_and(columns) : columns.expand(outputs[0].sizes());
  }
  return {all};
}

Tensors convolved(const Operator& op, const Call& call, const Tensors& /*outputs*/) {
  const at::Tensor found = products(op, call, false) > 0.5;
  const at::Tensor untouched = products(op, call, true) < 0.5;
  if (!untouched.any().item<bool>()) return {found};
  return {found | (untouched & found.any(2, true).any(-1, true).expand(found.sizes()))};
}

namespace {

/// Presence by the data operands only, as the plain operator takes them.
Tensors as_plain(const Operator& plain, const Operator& op, const Call& call,
                 const Tensors& outputs) {
  Call two = call.on({});
  for (size_t i = 0; i < call.inputs.size(); ++i) {
    if (!is_data(op, i)) continue;
    two.inputs.push_back(call.in(i));
    two.present.push_back(call.presence(i));
  }
  return plain.presence(plain, two, outputs);
}

}  // namespace

Tensors convolved_plainly(const Operator& op, const Call& call, const Tensors& outputs) {
  return as_plain(*find_operator("", "Conv"), op, call, outputs);
}

Tensors contracted_plainly(const Operator& op, const Call& call, const Tensors& outputs) {
  return as_plain(*find_operator("", "Gemm"), op, call, outputs);
}

Tensors reduced(const Operator& op, const Call& call, const Tensors& /*outputs*/) {
  return as_flags(run_on_presence(op, call, reduce_max));
}

Tensors arg_reduced(const Operator& /*op*/, const Call& call, const Tensors& /*outputs*/) {
  const int64_t axis = call.integer("axis", 0);
  return {at::amax(call.presence_numbers(0), axis, call.integer("keepdims", 1) != 0) > 0.5};
}

Tensors chosen(const Operator& /*op*/, const Call& call, const Tensors& outputs) {
  const int64_t axis = wrapped(call.integer("axis", -1), call.in(0).dim());
  const at::Tensor any = at::amax(call.presence_numbers(0), axis, true) > 0.5;
  Tensors results;
  for (const at::Tensor& y : outputs) {
    results.push_back(y.defined() ? any.expand(y.sizes()) : at::Tensor());
  }
  return results;
}

Tensors pooled(const Operator& op, const Call& call, const Tensors& outputs) {
  Tensors results = as_flags({run_on_presence(op, call, max_pool).front()});
  results.resize(outputs.size());
  return results;
}

Tensors pooled_globally(const Operator& /*op*/, const Call& call, const Tensors& /*outputs*/) {
  const at::Tensor p = call.presence_numbers(0);
  return {at::amax(p, successive(2, p.dim()), true) > 0.5};
}

Tensors joined_integers(const Operator& /*op*/, const Call& call, const Tensors& /*outputs*/) {
  Tensors parts;
  for (size_t i = 2; i < call.inputs.size(); i += 3) parts.push_back(call.presence_numbers(i));
  return as_flags(concat(call.on(std::move(parts))));
}

Tensors padded(const Operator& op, const Call& call, const Tensors& /*outputs*/) {
  if (call.text("mode", "constant") != "constant") return as_flags(run_on_presence(op, call, pad));
  at::Tensor p = call.presence(0);
  const int64_t rank = p.dim();
  const Ints pads = pads_of(call);
  for (int64_t axis = 0; axis < rank; ++axis) {
    const at::Tensor slab = p.any(axis, true);
    const auto border = [&](int64_t count) {
      Ints dims = p.sizes().vec();
      dims[axis] = std::max<int64_t>(0, count);
      return slab.expand(dims);
    };
    const int64_t begin = pads[axis];
    const int64_t end = pads[axis + rank];
    const int64_t cut = std::max<int64_t>(0, -begin);
    const int64_t rest = p.size(axis) - cut - std::max<int64_t>(0, -end);
    p = at::cat({border(begin), p.narrow(axis, cut, rest), border(end)}, axis);
  }
  return {p};
}

Tensors recurrent(const Operator& /*op*/, const Call& call, const Tensors& outputs) {
  const bool directed = call.node.domain != "torch";
  const bool projects = !directed && call.has_in(7);
  const int64_t hidden = projects ? call.in(7).size(1) : call.in(2).size(-1);
  at::Tensor there;
  for (const size_t i : {size_t{1}, size_t{2}, size_t{3}}) {
    if (!call.presence(i).defined()) continue;
    const at::Tensor found = units(call.presence(i), hidden, directed);
    there = both(there, found);
  }
  // [t d n h], [n t d h]; [d n h], [n d h]; without d in a torch layer's [t n h].
  if (there.defined() && !directed) there = there[0];
  if (there.defined() && directed && call.integer("layout", 0) != 1) there = there.unsqueeze(1);
  at::Tensor projected = there;
  if (projects) projected = call.presence(7).defined() ? call.presence(7).any(1) : at::Tensor();
  Tensors results(outputs.size());
  for (size_t i = 0; i < outputs.size(); ++i) {
    const at::Tensor& p = i == 2 ? there : projected;  // c is not projected
    if (p.defined() && outputs[i].defined()) results[i] = p.expand(outputs[i].sizes());
  }
  return results;
}

Tensors recurrent_by_columns(const Operator& op, const Call& call, const Tensors& outputs) {
  const auto turned = [](const at::Tensor& x) { return x.defined() ? x.transpose(1, 2) : x; };
  Call by_rows = call.on({call.in(0), turned(call.in(1)), turned(call.in(2)), call.in(3)});
  by_rows.present = {call.presence(0), turned(call.presence(1)), turned(call.presence(2)),
                     call.presence(3)};
  return recurrent(op, by_rows, outputs);
}

Tensors everywhere(const Operator& /*op*/, const Call& /*call*/, const Tensors& outputs) {
  return Tensors(outputs.size());
}

}  // namespace parsimony::executor
