// A weight tensor as the matrices that its layer multiplies by.
#pragma once

#include <cstdint>
#include <vector>

#include "parsimony/graph/axis_keep.h"
#include "parsimony/graph/graph.h"
#include "parsimony/pruners/elements/contraction.h"
#include "parsimony/pruners/elements/matrix.h"

namespace parsimony::elements {

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
