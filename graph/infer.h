// Shapes of every value, and the elements of those that are computed from shapes.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "parsimony/graph/graph.h"
#include "parsimony/graph/input_spec.h"
#include "parsimony/graph/operators/factor.h"

namespace parsimony {

/// Sizes for what the file leaves open.
struct Probe {
  std::vector<InputSpec> inputs;  ///< in order of the graph's inputs; may be shorter
  int64_t first = 2;              ///< a symbolic first dimension
  int64_t other = 32;             ///< every other symbolic dimension
};

/// Literal tensors whose elements inference reads: integers of moderate length, a handful of
/// floats.
bool is_literal(DType type, int64_t count);

/// Infers from the graph's inputs downwards.
/// @throws ShapeError if operands contradict each other
Facts infer(const Graph& graph, const Probe& probe = {});

/// The probe among the usual sizes for which most shapes come out; what `infer` should be given.
Probe choose_probe(const Graph& graph, const std::vector<InputSpec>& inputs = {});

/// A probe and what inference knows with it.
struct Probed {
  Probe probe;
  Facts facts;
};

/// `infer` with the probe that `choose_probe` chooses. @throws ShapeError
Probed infer_with_choice(const Graph& graph, const std::vector<InputSpec>& inputs = {});

/// Other sizes for what the file leaves open, to see that nothing depends on the first ones; empty
/// if the file leaves nothing open or the network does not take them.
std::optional<Probed> second_probe(const Graph& graph, const Probed& first);

/// The same for a batch of one, where the file leaves the batch open; `first.facts` elsewhere.
Facts infer_sample(const Graph& graph, const Probed& first);

/// Evaluates the computed values again, for other shapes.
ValueConstants reevaluate(const Graph& graph, const Facts& facts, const ValueShapes& shapes);

/// One node of shape arithmetic on known elements: Shape, Gather, Concat, Mul, …. Empty if the
/// operator is not arithmetic or an operand is not known. Does not look at `view`'s outputs.
std::optional<std::vector<HostTensor>> evaluate(const NodeView& view);

}  // namespace parsimony
