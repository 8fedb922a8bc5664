#include <algorithm>
#include <limits>

#include "parsimony/graph/attributes.h"
#include "parsimony/torch_io/script/part_impl.h"

namespace parsimony::torch_io::script {
namespace {

constexpr int64_t kToTheEnd = std::numeric_limits<int64_t>::max();

/// The one integer in an operand, as far as it is known.
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
  const Node* node = builder.producer(value);
  if (node == nullptr || (node->op != "Slice" && node->op != "Gather")) return std::nullopt;
  const std::vector<ValueId> inputs = node->inputs;
  const bool sliced = node->op == "Slice";
  const Shape* index = sliced ? nullptr : builder.shape(inputs[1]);
  if (!sliced && (index == nullptr || !index->empty())) return std::nullopt;
  const auto begin = only(builder, inputs[1]);
  const auto end = sliced ? only(builder, inputs[2]) : begin;
  const auto axis = sliced ? only(builder, inputs[3]) : std::optional(attr(*node, "axis", 0));
  const auto step = sliced ? only(builder, inputs[4]) : 1;
  const Shape* shape = builder.shape(inputs[0]);
  if (!begin || !end || !axis || step != 1 || shape == nullptr) return std::nullopt;
  const int64_t size = (*shape)[*axis];
  Part part{.whole = inputs[0], .axis = *axis, .begin = within(*begin, size)};
  part.end = sliced ? within(*end, size) : part.begin + 1;
  if (sliced) part.starts = inputs[1], part.ends = inputs[2];
  return part.begin < part.end ? std::optional(part) : std::nullopt;
}

ValueId replaced(Builder& builder, const Part& part, ValueId replacement) {
  const int64_t size = (*builder.shape(part.whole))[part.axis];
  const bool single = part.starts == kNone;
  std::vector<Operand> operands;
  if (part.begin > 0) {
    const ValueId to = single ? builder.integers({part.begin}) : part.starts;
    operands.push_back({builder.slice({part.whole}, part.axis, builder.integers({0}), to)});
  }
  operands.push_back(
      {single ? builder.emit("Unsqueeze", {{replacement}, {builder.integers({part.axis})}})
              : replacement});
  if (part.end < size) {
    const ValueId from = single ? builder.integers({part.end}) : part.ends;
    operands.push_back(
        {builder.slice({part.whole}, part.axis, from, builder.integers({kToTheEnd}))});
  }
  const ValueId whole = operands.size() == 1
                            ? operands[0].value
                            : builder.emit("Concat", operands, {{"axis", part.axis}});
  if (builder.is_complex(part.whole)) builder.set_complex(whole);
  return whole;
}

}  // namespace parsimony::torch_io::script
