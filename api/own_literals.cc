#include "parsimony/api/own_literals.h"

#include "parsimony/graph/infer.h"

namespace parsimony {

void own_literals(Graph& graph, TensorMemory& memory) {
  for (Weight& weight : graph.weights) {
    if (!is_literal(weight.dtype, weight.count())) continue;
    const size_t bytes = weight.count() * weight.stride;
    if (bytes == 0) continue;
    weight.data = memory.emplace_back(weight.data, weight.data + bytes).data();
  }
}

}  // namespace parsimony
