// Sums over the rows of a layer, expressed as networks that an engine runs where its activations
// are.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "parsimony/graph/graph_builder.h"

namespace parsimony {

/// The opset of the networks that compute sums.
constexpr int kSumsOpset = 13;

/// Adds an input of this type, cast to float32; or several, joined along their first axis.
ValueId input_in_floats(GraphBuilder& graph, DType dtype = DType::kFloat32, size_t count = 1);

/// Returns the fewest rows, of so many columns, for which Σ x xᵀ takes longer to compute than to be
/// added to other sums. Fewer are better joined with those of other batches.
int64_t enough_rows(int64_t columns);

/// The operand that a layer multiplies by its matrix.
struct RowsOf {
  const Node& layer;  ///< Conv, ConvTranspose, Gemm, MatMul or a recurrent layer
  Shape weight;       ///< shape of its matrix
  int data = 0;       ///< index of the multiplied operand
  std::vector<int64_t> steps =
      {};  ///< stride of the sampled positions per spatial axis; empty: all
};

/// Returns the number of groups of such a layer.
int64_t groups_of_layer(const Node& layer);

/// Returns the operand of the layer's matrix, for data x with these dims but for the number of
/// samples: [groups, rows, in], a row per sample and position of the answer, columns in the order
/// of the stored kernel, [i ..k]. The answer's rows are the product.
ValueId rows_of(GraphBuilder& graph, const RowsOf& rows, ValueId x, const Shape& dims);

/// Selects columns of rows [groups, rows, columns].
ValueId columns_between(GraphBuilder& graph, ValueId rows, int64_t begin, int64_t end);

/// Returns whether rows of several values x are those of the values joined along their first axis.
bool rows_join(const RowsOf& rows, const Shape& dims);

/// Returns how many columns these rows have.
int64_t columns_of(const RowsOf& rows, const Shape& dims);

/// Returns the rows of a ConvTranspose by its input: a row per position of the input, with the
/// channels as columns.
ValueId input_rows_of(GraphBuilder& graph, const RowsOf& rows, ValueId x, const Shape& dims);
int64_t input_columns_of(const RowsOf& rows, const Shape& dims);

/// Returns a layer's output in the same order: [groups, rows, out / groups]. @param channels  of
/// the output along `axis`, which may be negative
ValueId output_rows_of(GraphBuilder& graph, const RowsOf& rows, ValueId answer, size_t rank,
                       int64_t axis, int64_t channels);

/// Selects channels of an output; all if the list is empty.
ValueId channels_of(GraphBuilder& graph, ValueId answer, int64_t axis,
                    const std::vector<int64_t>& kept);

/// Returns target minus found, the error of a layer's answer. @param rectified  where Relu zeroes
/// the target answer, any negative value is as good
ValueId residual(GraphBuilder& graph, ValueId target, ValueId found, bool rectified);

/// Σ a bᵀ over the rows of [groups, rows, n] and [groups, rows, m]: [groups, n, m].
ValueId products(GraphBuilder& graph, ValueId a, ValueId b);

/// Σ a over its rows: [groups, n].
ValueId sum_of_rows(GraphBuilder& graph, ValueId a);

/// Σ a² over its rows: [groups, n].
ValueId sum_of_squares(GraphBuilder& graph, ValueId a);

/// Returns the shape of a value, as int64.
ValueId sizes_of(GraphBuilder& graph, ValueId a);

/// Adds Σ x and Σ x² of each channel (axis 1 of x), in double, as outputs of the graph.
void sum_channels(GraphBuilder& graph, ValueId x, size_t rank);

/// Adds the sum and the number of cosines between vectors of x and y along an axis as outputs of
/// the graph. @param rectified  ignore their negative parts
void sum_cosines(GraphBuilder& graph, ValueId x, ValueId y, int64_t axis, bool rectified);

/// Returns x with zero at the indices of an axis whose flag, a float32, is 0. @param flag_of  per
/// index, its place among the flags
ValueId where_present(GraphBuilder& graph, ValueId x, ValueId flags, std::vector<int64_t> flag_of,
                      int axis, size_t rank);

/// Adds the sum of the norms of x - y along these axes, and the number of those that are not zero,
/// in double, as outputs of the graph.
void sum_norms(GraphBuilder& graph, ValueId x, ValueId y, std::vector<int64_t> axes);

/// Returns the samples [begin, end) of x; both bounds are values with one element.
ValueId samples_of(GraphBuilder& graph, ValueId x, ValueId begin, ValueId end);

}  // namespace parsimony
