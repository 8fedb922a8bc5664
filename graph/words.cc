#include "parsimony/graph/words.h"

#include <algorithm>

#include "parsimony/base/errors.h"
#include "parsimony/base/ranges.h"
#include "parsimony/graph/attributes.h"
#include "parsimony/graph/operators/schema.h"

namespace parsimony {
namespace {

/// The reads of one input's numbers, and of their copies.
struct Reads {
  std::vector<ValueId> tables;  ///< whose rows they number
  NodeId other = kNone;         ///< a node that reads them for another reason
};

/// The table whose rows the operand numbers; kNone if it does not.
ValueId table_of(const Graph& graph, const Use& use) {
  const Node& node = graph.node(use.node);
  const bool looks_up = schema_of(node).linear.kind == LinearKind::kLookup && use.input == 1;
  if (!looks_up || node.inputs[0] == kNone || attr(node, "axis", int64_t{0}) != 0) return kNone;
  return graph.value(node.inputs[0]).weight == kNone ? ValueId(kNone) : node.inputs[0];
}

Reads reads_of(const Graph& graph, ValueId input) {
  Reads reads;
  std::vector<ValueId> copies = {input};
  for (size_t i = 0; i < copies.size(); ++i) {
    const Value& value = graph.value(copies[i]);
    if (value.captured || value.is_output) reads.other = value.producer;
    for (const Use& use : value.uses) {
      const Node& node = graph.node(use.node);
      if (!reads_elements(node, use.input)) continue;
      if (const ValueId table = table_of(graph, use); table != kNone) {
        reads.tables.push_back(table);
      } else if (has_trait(node, kCopies) || (has_trait(node, kRearranges) && use.input == 0)) {
        copies.push_back(node.outputs.front());
      } else {
        reads.other = use.node;
      }
    }
  }
  return reads;
}

}  // namespace

Words find_words(const Graph& graph, const Facts& facts) {
  Words words;
  const auto rows = [&](ValueId table) {
    const Shape& dims = graph.weight_of(table).dims;
    return dims.size() == 2 ? dims.front() : 0;
  };
  std::vector<Reads> reads;
  for (const ValueId input : graph.inputs) {
    reads.push_back(reads_of(graph, input));
    for (const ValueId table : reads.back().tables) words.size = std::max(words.size, rows(table));
  }
  if (words.size == 0) return words;
  for (size_t i = 0; i < reads.size(); ++i) {
    const auto is_long = [&](ValueId table) { return rows(table) == words.size; };
    if (std::ranges::none_of(reads[i].tables, is_long)) continue;
    const std::string name = in_quotes(graph.value(graph.inputs[i]).name);
    if (reads[i].other != kNone) {
      throw UnsupportedError("the numbers of words in input ", name, " are also read by node ",
                             in_quotes(label_of(graph, graph.node(reads[i].other))));
    }
    if (!std::ranges::all_of(reads[i].tables, is_long)) {
      throw UnsupportedError("the numbers of words in input ", name,
                             " index tables of different lengths");
    }
    words.inputs.push_back(graph.inputs[i]);
    for (const ValueId table : reads[i].tables) {
      if (!contains(words.dims, ValueDim{table, 0})) words.dims.push_back({table, 0});
    }
  }
  for (const ValueId output : graph.outputs) {
    const auto& shape = facts.shapes[output];
    if (shape && shape->size() > 1 && shape->back() == words.size) {
      words.dims.push_back({output, static_cast<int>(shape->size()) - 1});
    }
  }
  return words;
}

}  // namespace parsimony
