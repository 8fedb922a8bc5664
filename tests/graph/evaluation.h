// Runs one node of `evaluate` on constants.
#pragma once

#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "parsimony/graph/infer.h"
#include "parsimony/graph/operators/node_view.h"
#include "tests/graph/builder.h"

namespace parsimony::test {

using Results = std::optional<std::vector<HostTensor>>;
using Operand = std::optional<HostTensor>;  ///< empty: an absent operand

inline HostTensor ints(Shape dims, std::vector<int64_t> values, DType dtype = DType::kInt64) {
  HostTensor tensor = HostTensor::vector(std::move(values), dtype);
  tensor.dims = std::move(dims);
  return tensor;
}

inline HostTensor floats(Shape dims, std::vector<double> values, DType dtype = DType::kFloat32) {
  HostTensor tensor;
  tensor.dtype = dtype;
  tensor.dims = std::move(dims);
  tensor.floats = std::move(values);
  return tensor;
}

inline HostTensor list(std::vector<int64_t> values) {
  return HostTensor::vector(std::move(values));
}

inline constexpr int64_t kHighest = std::numeric_limits<int64_t>::max();
inline constexpr int64_t kLowest = std::numeric_limits<int64_t>::min();
inline const HostTensor kSix = ints({2, 3}, {0, 1, 2, 3, 4, 5});

inline Attribute one(int64_t value) { return value; }
inline Attribute many(std::vector<int64_t> values) { return values; }

inline Results run_all(const std::string& op, const std::vector<Operand>& operands,
                       Attributes attributes = {}, size_t outputs = 1) {
  Builder b;
  std::vector<ValueId> inputs;
  for (const Operand& operand : operands) inputs.push_back(operand ? b.value("in") : kNone);
  std::vector<ValueId> results;
  for (size_t i = 0; i < outputs; ++i) results.push_back(b.value("out"));
  b.add(op, inputs, results, std::move(attributes)).name = "node";
  finish(b.graph);
  Facts facts = no_facts(b.graph);
  for (size_t i = 0; i < operands.size(); ++i) {
    if (!operands[i]) continue;
    facts.constants[inputs[i]] = operands[i];
    facts.shapes[inputs[i]] = operands[i]->dims;
  }
  return evaluate(NodeView(b.graph, b.graph.nodes[NodeId(0)], facts));
}

/// The only output, if the node has one.
inline std::optional<HostTensor> run(const std::string& op, const std::vector<Operand>& operands,
                                     Attributes attributes = {}) {
  Results results = run_all(op, operands, std::move(attributes));
  if (!results || results->size() != 1) return std::nullopt;
  return std::move(results->front());
}

}  // namespace parsimony::test
