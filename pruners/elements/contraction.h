// Along which axis of its weight a layer sums.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "parsimony/graph/graph.h"
#include "parsimony/pruners/elements/orders.h"

namespace parsimony::elements {

/// The axes of a weight tensor, as the layer that multiplies with it uses them.
struct Contraction {
  int input = 0;                  ///< the axis that is summed over: of input channels
  std::vector<int> kernel = {};   ///< summed over too: positions of a convolution's kernel
  std::vector<int> outputs = {};  ///< every other axis
  int64_t groups = 1;             ///< the outputs are so many parts, each with inputs of its own

  bool operator==(const Contraction&) const = default;
};

/// How `layer` contracts the weight matrix `weight`, which may reach it through Transpose, Identity
/// or Cast. Conv [out, in, …kernel], ConvTranspose [in, out, …], Gemm and MatMul by the side on
/// which the weight stands, recurrent layers [.., gates·out, in]. Empty for lookups (Gather), for
/// Einsum, for grouped ConvTranspose and where something else stands between.
std::optional<Contraction> contraction_of(const Graph& graph, NodeId layer, ValueId weight);

/// The operand of `layer` by which the matrix reaches it; kNone if something else stands between.
int operand_of(const Graph& graph, NodeId layer, ValueId weight);

/// How all layers that read the matrix contract it; empty where they differ.
std::optional<Contraction> common_contraction(const Graph& graph, const Order& order);

}  // namespace parsimony::elements
