// Reshaping operators. Literal sizes become constants that a plan can change; sizes taken from a
// tensor follow it.
#include <algorithm>

#include "parsimony/base/ranges.h"
#include "parsimony/programs/builder.h"
#include "parsimony/programs/call.h"

namespace parsimony::programs {
namespace {

constexpr int64_t kSameSize = 0;  // Reshape's code for the input's own size

ValueId with_sizes(Call& call, const Operand& x, std::vector<Element> sizes) {
  if (call.out.is_complex(x.value)) sizes.push_back({2});
  return call.out.emit("Reshape", {x, {call.out.list_of(sizes)}});
}

Element size_of(Call& call, ValueId value, int64_t dim) {
  return {0, call.out.size_of_dim(value, dim), {}};
}

/// Returns the sizes of x, with those of dimensions [begin, end) replaced by `middle`.
std::vector<Element> sizes_around(Call& call, ValueId x, int64_t begin, int64_t end,
                                  const std::vector<Element>& middle) {
  std::vector<Element> sizes(begin, Element{kSameSize});
  sizes.insert(sizes.end(), middle.begin(), middle.end());
  const int64_t rank = call.rank(x);
  for (int64_t d = end; d < rank; ++d) sizes.push_back(size_of(call, x, d));
  return sizes;
}

void set_permuted(Call& call, std::vector<int64_t> perm) {
  const Operand x = call.tensor(0);
  if (call.out.is_complex(x.value)) perm.push_back(static_cast<int64_t>(perm.size()));
  call.set_view(call.out.emit("Transpose", {x}, {{"perm", perm}}), x.value);
}

}  // namespace

ValueId permuted(Call& call, ValueId value, const std::vector<int64_t>& perm) {
  return call.out.emit("Transpose", {{value}}, {{"perm", perm}});
}

ValueId reshaped(Call& call, ValueId value, const std::vector<int64_t>& sizes) {
  return call.out.emit("Reshape", {{value}, {call.out.integers(sizes)}});
}

/// view(x, sizes), reshape(x, sizes)
void lower_view(Call& call) {
  const Operand x = call.tensor(0);
  call.require(call.arg(1).is(BindingKind::kList));
  std::vector<Element> sizes = call.elements(1);
  for (const Element& size : sizes) call.require(size.run_time != kNone || size.fixed != 0);
  call.set_view(with_sizes(call, x, sizes), x.value);
}

/// as_strided(x, sizes, strides, offset), as the decomposition of pooling has it: a tensor of x's
/// sizes, in their order, has the elements of x where x has just been made. Of its sizes two at
/// most are above 1, so that the stride of the first is the size of the second.
void lower_as_strided(Call& call) {
  const ValueId x = call.tensor(0).value;
  const std::vector<int64_t> sizes = call.integers(1);
  const std::vector<int64_t> strides = call.integers(2);
  call.require(sizes == call.shape(x) && strides.size() == sizes.size());
  call.require(call.integer(3, 0) == 0);
  int inner = kNone;  // the dimension behind the one that is looked at
  for (size_t d = sizes.size(); d-- > 0;) {
    if (sizes[d] <= 1) continue;
    call.require(strides[d] == (inner == kNone ? 1 : sizes[inner]));
    if (inner != kNone) {
      const auto above_one = [](int64_t size) { return size > 1; };
      call.require(call.out.root(x) == x && std::ranges::count_if(sizes, above_one) == 2);
      call.out.sources().size_literals.push_back({call.location(2, static_cast<int>(d)), x, inner});
    }
    inner = static_cast<int>(d);
  }
  lower_view(call);
}

/// flatten(x, start, end)
void lower_flatten(Call& call) {
  const Operand x = call.tensor(0);
  const size_t rank = call.rank(x.value);
  if (rank == 0) return call.set_view(with_sizes(call, x, {{1}}), x.value);
  const int64_t start = call.axis(call.integer(1, 0), rank);
  const int64_t end = call.axis(call.integer(2, -1), rank);
  const auto last = static_cast<int64_t>(rank) - 1;
  if (start == end) return call.set_result(x.value);
  if (start == 1 && end == last && !call.out.is_complex(x.value)) {
    return call.set_view(call.out.emit("Flatten", {x}, {{"axis", int64_t{1}}}), x.value);
  }
  const auto sizes = sizes_around(call, x.value, start, end + 1, {{-1}});
  call.set_view(with_sizes(call, x, sizes), x.value);
}

/// unflatten(x, dim, sizes)
void lower_unflatten(Call& call) {
  const Operand x = call.tensor(0);
  const int64_t axis = call.axis(call.integer(1), call.rank(x.value));
  const auto sizes = sizes_around(call, x.value, axis, axis + 1, call.elements(2));
  call.set_view(with_sizes(call, x, sizes), x.value);
}

/// permute(x, dims)
void lower_permute(Call& call) {
  std::vector<int64_t> perm = call.integers(1);
  for (int64_t& axis : perm) axis = call.axis(axis, perm.size());
  set_permuted(call, perm);
}

/// transpose(x, a, b)
void lower_transpose(Call& call) {
  const size_t rank = call.rank(call.tensor(0).value);
  if (rank == 0) return call.set_result(call.tensor(0).value);
  std::vector<int64_t> perm = successive(0, rank);
  std::swap(perm[call.axis(call.integer(1), rank)], perm[call.axis(call.integer(2), rank)]);
  set_permuted(call, perm);
}

/// movedim(x, from, to): the other dimensions keep their order
void lower_movedim(Call& call) {
  const size_t rank = call.rank(call.tensor(0).value);
  const std::vector<int64_t> from = call.integers(1);
  const std::vector<int64_t> to = call.integers(2);
  call.require(from.size() == to.size());
  std::vector<int64_t> perm(rank, kNone);
  std::vector<bool> moves(rank, false);
  for (size_t i = 0; i < from.size(); ++i) {
    const int64_t axis = call.axis(from[i], rank);
    perm[call.axis(to[i], rank)] = axis;
    moves[axis] = true;
  }
  int64_t next = 0;
  for (int64_t& axis : perm) {
    if (axis != kNone) continue;
    while (moves[next]) ++next;
    axis = next++;
  }
  set_permuted(call, perm);
}

/// t(x): the transpose of a matrix; vectors are unchanged
void lower_t(Call& call) {
  const ValueId x = call.tensor(0).value;
  if (call.rank(x) < 2) return call.set_result(x);
  call.require(call.rank(x) == 2 || call.op != "t");
  call.set_result(transposed(call, x));
}

/// squeeze(x), squeeze(x, dim): a dimension other than 1 is kept
void lower_squeeze(Call& call) {
  const Operand x = call.tensor(0);
  const Shape shape = call.shape(x.value);
  const bool named = call.size() > 1;
  std::vector<int64_t> axes;
  for (const int64_t dim : named ? call.integers(1) : successive(0, shape.size())) {
    if (shape.empty()) return call.set_result(x.value);
    const int64_t axis = call.axis(dim, shape.size());
    if (shape[axis] == 1) {
      axes.push_back(axis);
    } else if (named) {
      call.out.pin_axis(x.value, axis);  // if pruned to 1, it would be squeezed
    }
  }
  if (axes.empty()) return call.set_result(x.value);
  call.set_view(call.out.emit("Squeeze", {x, {call.out.integers(axes)}}), x.value);
}

/// unsqueeze(x, dim)
void lower_unsqueeze(Call& call) {
  const Operand x = call.tensor(0);
  int64_t axis = call.integer(1);
  if (call.out.is_complex(x.value)) axis = call.axis(axis, call.rank(x.value) + 1);
  const std::vector<int64_t> axes{axis};
  call.set_view(call.out.emit("Unsqueeze", {x, {call.out.integers(axes)}}), x.value);
}

/// expand(x, sizes, implicit): -1 keeps a size, like 1 of Expand
void lower_expand(Call& call) {
  const Operand x = call.tensor(0);
  std::vector<Element> sizes = call.elements(1);
  for (Element& size : sizes) {
    if (size.run_time == kNone && size.fixed == -1) size = {1};
  }
  if (call.out.is_complex(x.value)) sizes.push_back({2});
  call.set_view(call.out.emit("Expand", {x, {call.out.list_of(sizes)}}), x.value);
}

/// expand_as(x, like), view_as(x, like)
void lower_as(Call& call) {
  const Operand x = call.tensor(0);
  const ValueId sizes = sizes_of(call.out, call.tensor(1).value);
  call.set_view(call.out.emit(call.onnx, {x, {sizes}}), x.value);
}

/// repeat(x, times): missing dimensions come first; tile(x, times), where missing times do
void lower_repeat(Call& call) {
  Operand x = call.tensor(0);
  std::vector<Element> times = call.elements(1);
  const size_t rank = call.rank(x.value);
  if (call.op == "tile" && times.size() < rank) {
    times.insert(times.begin(), rank - times.size(), Element{1});
  }
  call.require(times.size() >= rank);
  if (times.size() > rank) {
    const ValueId axes = call.out.integers(successive(0, times.size() - rank));
    x = {call.out.emit("Unsqueeze", {x, {axes}})};
  }
  call.set_node("Tile", {x, {call.out.list_of(times)}});
}

/// repeat_interleave(x, times, dim): [.., n, ..] -> [.., n, times, ..] -> [.., n times, ..]
void lower_repeat_interleave(Call& call) {
  const Operand x = call.tensor(0);
  const size_t rank = call.rank(x.value);
  const int64_t axis = call.axis(call.integer(2), rank);
  std::vector<Element> times(rank + 1, Element{1});
  times[axis + 1] = call.element(1);
  const ValueId apart = call.out.emit("Unsqueeze", {x, {call.out.integers({axis + 1})}});
  const ValueId repeated = call.out.emit("Tile", {{apart}, {call.out.list_of(times)}});
  call.set_result(
      with_sizes(call, {repeated}, sizes_around(call, x.value, axis, axis + 1, {{-1}})));
}

/// channel_shuffle(x, groups): [n, g c, …] -> [n, g, c, …] -> [n, c, g, …] -> [n, c g, …]
void lower_channel_shuffle(Call& call) {
  const Operand x = call.tensor(0);
  const size_t rank = call.rank(x.value);
  call.require(rank >= 3);
  std::vector<Element> apart{{kSameSize}, {call.integer(1), kNone, call.location(1)}, {-1}};
  std::vector<Element> together{{kSameSize}, {-1}};
  std::vector<int64_t> perm{0, 2, 1};
  for (size_t d = 2; d < rank; ++d) {
    const Element size = size_of(call, x.value, static_cast<int64_t>(d));
    apart.push_back(size);
    together.push_back(size);
    perm.push_back(static_cast<int64_t>(d) + 1);
  }
  const ValueId groups = with_sizes(call, x, apart);
  call.set_result(with_sizes(call, {permuted(call, groups, perm)}, together));
}

}  // namespace parsimony::programs
