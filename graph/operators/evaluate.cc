#include <algorithm>
#include <array>

#include "parsimony/graph/operators/evaluate_impl.h"

namespace parsimony {
namespace {

using namespace evaluation;

struct Entry {
  std::string_view op;
  Function function;
  int min_inputs;
};

constexpr std::array kTable = {
    Entry{"Abs", unary, 1},
    Entry{"Add", binary, 2},
    Entry{"And", compare, 2},
    Entry{"Cast", cast, 1},
    Entry{"CastLike", cast_like, 2},
    Entry{"Ceil", unary, 1},
    Entry{"Concat", concat, 1},
    Entry{"ConstantOfShape", constant_of_shape, 1},
    Entry{"CumSum", cum_sum, 2},
    Entry{"Div", binary, 2},
    Entry{"Equal", compare, 2},
    Entry{"Exp", unary, 1},
    Entry{"Expand", expand, 2},
    Entry{"Flatten", flatten, 1},
    Entry{"Floor", unary, 1},
    Entry{"Gather", gather, 2},
    Entry{"GatherElements", gather_elements, 2},
    Entry{"Greater", compare, 2},
    Entry{"GreaterOrEqual", compare, 2},
    Entry{"Identity", identity, 1},
    Entry{"Less", compare, 2},
    Entry{"LessOrEqual", compare, 2},
    Entry{"Log", unary, 1},
    Entry{"Max", variadic, 1},
    Entry{"Mean", variadic, 1},
    Entry{"Min", variadic, 1},
    Entry{"Mod", binary, 2},
    Entry{"Mul", binary, 2},
    Entry{"Neg", unary, 1},
    Entry{"NonZero", non_zero, 1},
    Entry{"Not", unary, 1},
    Entry{"Or", compare, 2},
    Entry{"Pow", binary, 2},
    Entry{"Range", range, 3},
    Entry{"Reciprocal", unary, 1},
    Entry{"ReduceMax", reduce, 1},
    Entry{"ReduceMean", reduce, 1},
    Entry{"ReduceMin", reduce, 1},
    Entry{"ReduceProd", reduce, 1},
    Entry{"ReduceSum", reduce, 1},
    Entry{"Reshape", reshape, 1},
    Entry{"Round", unary, 1},
    Entry{"ScatterElements", scatter_elements, 3},
    Entry{"ScatterND", scatter_nd, 3},
    Entry{"SequenceAt", element_of_list, 1},
    Entry{"Shape", shape, 1},
    Entry{"Sign", unary, 1},
    Entry{"Size", size, 1},
    Entry{"Slice", slice, 1},
    Entry{"Split", split, 1},
    Entry{"SplitToSequence", split_to_list, 1},
    Entry{"Sqrt", unary, 1},
    Entry{"Squeeze", squeeze, 1},
    Entry{"Sub", binary, 2},
    Entry{"Sum", variadic, 1},
    Entry{"Tile", tile, 2},
    Entry{"Transpose", transpose, 1},
    Entry{"Unsqueeze", unsqueeze, 1},
    Entry{"Where", where, 3},
    Entry{"Xor", compare, 2},
};
static_assert(std::ranges::is_sorted(kTable, {}, &Entry::op));

const Entry* find_entry(std::string_view op) {
  const auto found = std::ranges::lower_bound(kTable, op, {}, &Entry::op);
  return found != kTable.end() && found->op == op ? &*found : nullptr;
}

bool is_known(const HostTensor* tensor) {
  return tensor != nullptr && fits(tensor->dims) && tensor->count() == element_count(tensor->dims);
}

bool reads_first_only(const Entry& entry) {
  return entry.function == cast_like || entry.function == element_of_list;
}

/// Operators that look at no element of (some of) their operands check the others themselves.
bool reads_elements(const Entry& entry) {
  return entry.function != shape && entry.function != size && !reads_first_only(entry);
}

}  // namespace

std::optional<std::vector<HostTensor>> evaluate(const NodeView& view) {
  if (!view.node().domain.empty() || view.node().has_subgraph) return std::nullopt;
  const Entry* entry = find_entry(view.node().op);
  if (entry == nullptr) return std::nullopt;
  for (int i = 0; i < std::max(view.inputs(), entry->min_inputs); ++i) {
    if (!view.has_input(i)) {
      if (i < entry->min_inputs) return std::nullopt;
      continue;
    }
    const bool needed = reads_elements(*entry) || (i == 0 && reads_first_only(*entry));
    if (needed && !is_known(view.constant(i))) return std::nullopt;
  }
  return entry->function(view);
}

}  // namespace parsimony
