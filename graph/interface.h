// Inputs and outputs of a network that may become shorter: states, which an output feeds back to an
// input of the next run, and dimensions that the user sets free.
#pragma once

#include <string>
#include <vector>

#include "parsimony/graph/graph.h"
#include "parsimony/graph/input_spec.h"
#include "parsimony/graph/operators/factor.h"

namespace parsimony {

/// The same specs in the order of the graph's inputs: named ones where their inputs are, the others
/// in order from the first. @throws ConfigError for unknown names, and for too many
std::vector<InputSpec> by_position(const std::vector<InputSpec>& specs, const Graph& graph);

/// What may change of a network's inputs and outputs, as a user writes it.
struct InterfaceOptions {
  std::vector<std::string> states;  ///< "OUTPUT=INPUT", or "auto": those that `likely_states` finds
  std::vector<std::string> free;    ///< "NAME" or "NAME:axis", of an input or output

  bool empty() const { return states.empty() && free.empty(); }
  bool operator==(const InterfaceOptions&) const = default;
};

/// An output that is an input of the next run: a cache of keys, the state of an LSTM.
struct StatePair {
  ValueId output = kNone;
  ValueId input = kNone;
  bool operator==(const StatePair&) const = default;
};

struct ValueDim {
  ValueId value = kNone;
  int dim = 0;
  bool operator==(const ValueDim&) const = default;
};

/// The same in terms of the graph.
struct Interface {
  std::vector<StatePair> states;
  std::vector<std::pair<ValueDim, ValueDim>> tied;  ///< dimensions of states: removed together
  std::vector<ValueDim> free;                       ///< also those of states
};

/// Outputs that look like states: their names differ from an input's only in words such as
/// "present" and "past", "new" and "old", "out" and "in", and so do, at most, their lengths in one
/// dimension.
std::vector<StatePair> likely_states(const Graph& graph, const Facts& facts);

/// "auto" adds to `likely_states` what is left, in order, where as many outputs as inputs have the
/// same shape, or the same rank; the first input and the first output are data.
/// @throws ConfigError for unknown names, and for pairs that cannot be fed back
Interface resolve(const InterfaceOptions& options, const Graph& graph, const Facts& facts);

}  // namespace parsimony
