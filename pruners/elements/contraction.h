// Which axis of its weight a layer contracts.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "parsimony/graph/graph.h"
#include "parsimony/pruners/elements/element_tasks.h"

namespace parsimony::elements {

/// The axes of a weight tensor, as the layer that multiplies with it uses them.
struct Contraction {
  int input = 0;                  ///< the axis that is summed over: of input channels
  std::vector<int> kernel = {};   ///< summed over too: positions of a convolution's kernel
  std::vector<int> outputs = {};  ///< every other axis
  /// The outputs are split into this many parts, each with its own inputs.
  int64_t groups = 1;

  bool operator==(const Contraction&) const = default;
};

/// How `layer` contracts the weight matrix `weight`, which may reach it through Transpose, Identity
/// or Cast. Conv [out, in, …kernel], ConvTranspose [in, out, …], Gemm and MatMul depending on which
/// operand the weight is, recurrent layers [.., gates·out, in]. Empty for lookups (Gather), for
/// Einsum, for grouped ConvTranspose and if another operator lies in between.
std::optional<Contraction> contraction_of(const Graph& graph, NodeId layer, ValueId weight);

/// The operand through which the matrix reaches `layer`; kNone if another operator lies in between.
int operand_of(const Graph& graph, NodeId layer, ValueId weight);

/// How all layers that read the matrix contract it; empty where they differ.
std::optional<Contraction> common_contraction(const Graph& graph, const ElementTask& task);

}  // namespace parsimony::elements
