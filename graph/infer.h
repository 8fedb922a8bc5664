// Shape inference, with constant evaluation of values that are computed from shapes.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "parsimony/graph/graph.h"
#include "parsimony/graph/interface.h"

namespace parsimony {

/// Does the file leave sizes of its inputs open?
bool leaves_open(const Graph& graph);

/// The sizes assumed for symbolic dimensions.
struct Probe {
  std::vector<InputSpec> inputs;  ///< in order of the graph's inputs; may be shorter
  int64_t first = 2;              ///< a symbolic first dimension
  int64_t other = 32;             ///< every other symbolic dimension
  /// Symbolic dimensions that can only have another size than those, by input and axis. A name
  /// stands for its first dimension.
  std::map<std::pair<int, int>, int64_t> sizes = {};
  /// Symbolic dimensions stay unknown: no sizes were found with which the operands fit.
  bool open = false;
};

/// Literal tensors whose elements inference reads: integers of moderate length, a handful of
/// floats.
bool is_literal(DType type, int64_t count);

/// Infers shapes from the graph's inputs to its outputs.
/// @throws ShapeError if operands contradict each other
Facts infer(const Graph& graph, const Probe& probe = {});

/// The probe, among common sizes, with which most shapes can be inferred; pass it to `infer`. Where
/// operands contradict all of these, the sizes of other operands are tried.
Probe choose_probe(const Graph& graph, const std::vector<InputSpec>& inputs = {});

/// A probe and the facts inferred with it.
struct Probed {
  Probe probe;
  Facts facts;
};

/// `infer` with the probe that `choose_probe` chooses. @throws ShapeError
Probed infer_with_choice(const Graph& graph, const std::vector<InputSpec>& inputs = {});

/// Other sizes for the symbolic dimensions, to check that nothing depends on the first ones; empty
/// if there are no symbolic dimensions or the network does not accept them.
std::optional<Probed> second_probe(const Graph& graph, const Probed& first);

/// Returns the facts for a batch of one where the file leaves the batch open, else `first.facts`.
Facts infer_sample(const Graph& graph, const Probed& first);

/// Evaluates the computed values again, for other shapes.
ValueConstants reevaluate(const Graph& graph, const Facts& facts, const ValueShapes& shapes);

/// One node of shape arithmetic on known elements: Shape, Gather, Concat, Mul, …. Empty if the
/// operator is not arithmetic or an operand is not known. Does not look at `view`'s outputs.
std::optional<std::vector<HostTensor>> evaluate(const NodeView& view);

}  // namespace parsimony
