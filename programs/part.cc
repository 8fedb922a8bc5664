#include <algorithm>

#include "parsimony/base/ranges.h"
#include "parsimony/graph/attributes.h"
#include "parsimony/programs/builder.h"

namespace parsimony::programs {
namespace {

/// Returns the single integer in an operand, if known.
std::optional<int64_t> only(Builder& builder, ValueId value) {
  const HostTensor* tensor = builder.known(value);
  return tensor != nullptr && tensor->ints.size() == 1 ? std::optional(tensor->ints[0])
                                                       : std::nullopt;
}

int64_t within(int64_t index, int64_t size) {
  return std::clamp<int64_t>(index < 0 ? index + size : index, 0, size);
}

}  // namespace

std::optional<Part> part_of(Builder& builder, ValueId value) {
  if (const Part* noted = builder.noted_part(value)) return *noted;
  const Node* node = builder.producer(value);
  if (node == nullptr || (node->op != "Slice" && node->op != "Gather")) return std::nullopt;
  const std::vector<ValueId> inputs = node->inputs;
  const bool sliced = node->op == "Slice";
  const Shape* index = sliced ? nullptr : builder.shape(inputs[1]);
  if (!sliced && (index == nullptr || !index->empty())) return std::nullopt;
  const auto begin = only(builder, inputs[1]);
  const auto end = sliced ? only(builder, inputs[2]) : begin;
  const auto axis = sliced ? only(builder, inputs[3]) : std::optional(attr(*node, "axis", 0));
  const auto step = sliced ? only(builder, inputs[4]) : std::optional<int64_t>(1);
  const Shape* shape = builder.shape(inputs[0]);
  if (!begin || !end || !axis || !step || *step < 1 || shape == nullptr) return std::nullopt;
  const int64_t size = (*shape)[*axis];
  Part part{.whole = inputs[0], .axis = *axis, .begin = within(*begin, size)};
  part.step = *step;
  part.end = sliced ? within(*end, size) : part.begin + 1;
  part.index = *begin;
  if (sliced) part.starts = inputs[1], part.ends = inputs[2];
  return part.begin < part.end ? std::optional(part) : std::nullopt;
}

namespace {

std::optional<int64_t> literal_at(const Builder& builder, ValueId value) {
  const Graph& graph = builder.graph();
  const WeightId weight = graph.value(value).weight;
  const bool one = weight != kNone && graph.weight(weight).dtype == DType::kInt64 &&
                   graph.weight(weight).count() == 1;
  return one ? std::optional(to_host(graph.weight(weight)).ints[0]) : std::nullopt;
}

/// x[:1] or x[0] along a dimension
struct First {
  ValueId whole = kNone;
  int64_t axis = 0;
  bool keeps_axis = false;
};

std::optional<First> first_of(const Builder& builder, ValueId value) {
  const Value& known = builder.graph().value(value);
  const Node* node = known.is_input || known.weight != kNone ? nullptr : builder.producer(value);
  if (node == nullptr || (node->op != "Slice" && node->op != "Gather")) return std::nullopt;
  const bool sliced = node->op == "Slice";
  const auto holds = [&](size_t i, int64_t number) {
    return literal_at(builder, node->inputs.at(i)) == number;
  };
  if (!holds(1, 0) || (sliced && (!holds(2, 1) || !holds(4, 1)))) return std::nullopt;
  const WeightId index = builder.graph().value(node->inputs[1]).weight;
  if (!sliced && !builder.graph().weight(index).dims.empty()) return std::nullopt;
  const auto axis = sliced ? literal_at(builder, node->inputs[3]) : attr(*node, "axis", 0);
  if (!axis || *axis < 0) return std::nullopt;
  return First{node->inputs[0], *axis, sliced};
}

}  // namespace

Element size_at(Builder& builder, ValueId value, int64_t dim) {
  while (const auto first = first_of(builder, value)) {
    if (first->keeps_axis && dim == first->axis) return {1};
    if (!first->keeps_axis && dim >= first->axis) ++dim;
    value = first->whole;
  }
  return {0, builder.size_of_dim(value, dim), {}};
}

ValueId sizes_of(Builder& builder, ValueId value) {
  const Shape* shape = builder.shape(value);
  if (shape == nullptr || !first_of(builder, value)) return builder.emit("Shape", {{value}});
  const auto rank = static_cast<int64_t>(shape->size());
  std::vector<Element> sizes;
  for (int64_t d = 0; d < rank; ++d) sizes.push_back(size_at(builder, value, d));
  return builder.list_of(sizes);
}

namespace {

ValueId replaced_by_step(Builder& builder, const Part& part, ValueId replacement) {
  const int64_t size = (*builder.shape(part.whole))[part.axis];
  builder.pin_axis(part.whole, part.axis);
  std::vector<int64_t> from = successive(0, size);
  int64_t next = size;  // behind the whole lies what replaces
  for (int64_t i = part.begin; i < part.end; i += part.step) from[i] = next++;
  const ValueId both = builder.emit("Concat", {{part.whole}, {replacement}}, {{"axis", part.axis}});
  return builder.emit("Gather", {{both}, {builder.integers(std::move(from))}},
                      {{"axis", part.axis}});
}

}  // namespace

ValueId replaced(Builder& builder, const Part& part, ValueId replacement) {
  if (part.step > 1) return replaced_by_step(builder, part, replacement);
  const int64_t size = (*builder.shape(part.whole))[part.axis];
  const bool single = part.starts == kNone;
  std::vector<Operand> operands;
  if (part.begin > 0) {
    const ValueId to = single ? builder.integers({part.index}) : part.starts;
    operands.push_back({builder.slice({part.whole}, part.axis, builder.integers({0}), to)});
  }
  operands.push_back(
      {single ? builder.emit("Unsqueeze", {{replacement}, {builder.integers({part.axis})}})
              : replacement});
  if (part.end < size) {
    const ValueId from = single ? builder.integers({part.index + 1}) : part.ends;
    operands.push_back({builder.slice({part.whole}, part.axis, from, builder.integers({kToEnd}))});
  }
  const ValueId whole = operands.size() == 1
                            ? operands[0].value
                            : builder.emit("Concat", operands, {{"axis", part.axis}});
  if (builder.is_complex(part.whole)) builder.set_complex(whole);
  return whole;
}

ValueId written_over(Builder& builder, ValueId memory, ValueId result) {
  const ValueId never = builder.constant({DType::kBool, {}, {0}, {}});
  return builder.emit("Where", {{never}, {memory}, {result}});
}

bool is_empty(Builder& builder, ValueId value) {
  const Shape* shape = builder.shape(value);
  return shape != nullptr && contains(*shape, int64_t{0});
}

std::vector<std::pair<ValueId, ValueId>> written_through(Builder& builder, ValueId value,
                                                         ValueId result) {
  std::vector<std::pair<ValueId, ValueId>> written{{value, result}};
  const ValueId root = builder.root(value);
  while (written.back().first != root) {
    std::optional<Part> part = part_of(builder, written.back().first);
    if (!part) break;
    const ValueId now = written.back().second;
    written.emplace_back(part->whole, replaced(builder, *part, now));
    part->whole = written.back().second;
    builder.note_part(now, *part);
  }
  return written;
}

}  // namespace parsimony::programs
