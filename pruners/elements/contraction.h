// Weight tensors as the matrices that their layers multiply by: which of them lose single elements,
// and which axis a layer contracts.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "parsimony/graph/graph.h"
#include "parsimony/graph/slice.h"
#include "parsimony/pruners/elements/matrix.h"
#include "parsimony/pruners/settings.h"

namespace parsimony::elements {

/// A layer and the weight as it reads it.
struct Reader {
  NodeId layer = kNone;
  ValueId value = kNone;
};

struct ElementTask {
  WeightId weight = kNone;
  int request = kNone;          ///< index into Settings::requests
  std::vector<Reader> readers;  ///< at least one, in the order of the layers
};

/// One entry per matrix whose layers are all pruned by criteria over elements, in the order of the
/// layers. A matrix that several layers use follows the one with the lowest ratio.
std::vector<ElementTask> element_tasks(const Graph& graph, const Settings& settings);

/// The axes of a weight tensor, as the layer that multiplies with it uses them.
struct Contraction {
  int input = 0;                  ///< the axis that is summed over: of input channels
  std::vector<int> kernel = {};   ///< summed over too: positions of a convolution's kernel
  std::vector<int> outputs = {};  ///< every other axis
  /// The outputs are split into this many parts, each with its own inputs.
  int64_t groups = 1;

  bool operator==(const Contraction&) const = default;
};

/// Returns how `layer` contracts the weight matrix `weight`, which may reach it through Transpose,
/// Identity or Cast. Conv [out, in, …kernel], ConvTranspose [in, out, …], Gemm and MatMul depending
/// on which operand the weight is, recurrent layers [.., gates·out, in]. Empty for lookups
/// (Gather), for Einsum, for grouped ConvTranspose and if another operator lies in between.
std::optional<Contraction> contraction_of(const Graph& graph, NodeId layer, ValueId weight);

/// The operand through which the matrix reaches `layer`; kNone if another operator lies in between.
int operand_of(const Graph& graph, NodeId layer, ValueId weight);

/// Returns how all layers that read the matrix contract it; empty where they differ.
std::optional<Contraction> common_contraction(const Graph& graph, const ElementTask& task);

/// Element (r, c) of group g's matrix is element rows[g][r] + columns[c].offset of the tensor. Only
/// the kept part of the tensor is in it.
struct View {
  struct Column {
    int64_t offset = 0;
    /// In the layer's unfolded input: input channel · positions + position of the kernel.
    int64_t place = 0;
    int64_t position = 0;
  };

  std::vector<std::vector<int64_t>> rows;  ///< per group of a convolution, else one
  std::vector<Column> columns;             ///< in the order of `place`
  int64_t places = 0;                      ///< columns of the whole tensor

  int64_t groups() const { return static_cast<int64_t>(rows.size()); }
};

/// @param cuts the kept indices along some axes of the tensor; the others are not cut
View make_view(const Weight& weight, const Contraction& contraction,
               const std::vector<AxisKeep>& cuts);

/// Puts the columns of one kernel position side by side, positions one after the other: the order
/// in which patterns along the input axis are neighbours.
void order_by_position(View& view);

/// Columns per kernel position, once ordered by position; all of them for a plain matrix.
Runs runs_of(const View& view);

/// The matrix of one group, from the tensor's elements.
Matrix gather(const View& view, int64_t group, const std::vector<double>& elements);

/// Does the tensor have an N:M pattern? Of every m neighbours along the input axis, counted from
/// its start, at most n are not zero; at each position of a kernel. A group that the axis cuts
/// short may hold n as well.
/// @throws UnsupportedError for elements that are not numbers
bool has_pattern(const Weight& weight, const Contraction& contraction, NmPattern pattern);

}  // namespace parsimony::elements
