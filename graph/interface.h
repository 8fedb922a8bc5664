// Inputs and outputs of a network, as a user describes them: their sizes, and what may become
// shorter: states, which an output feeds back to an input of the next run, and dimensions that are
// set free.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "parsimony/base/types.h"
#include "parsimony/graph/graph.h"

namespace parsimony {

inline bool fits_declared(std::span<const int64_t> sizes, std::span<const int64_t> declared) {
  return std::ranges::equal(sizes, declared, [](int64_t size, int64_t requested) {
    return requested < 0 || size == requested;
  });
}

/// Shape of one graph input and, if it controls the network, the value of all its elements.
struct InputSpec {
  Shape dims;
  std::optional<double> value;
  DType dtype = DType::kUnknown;  ///< for formats that do not declare it
  bool open = false;              ///< the shape is not given: as the model declares it
  std::string name = {};          ///< of the input; empty: by position

  bool operator==(const InputSpec&) const = default;
};

/// Reads "1x3x32x32", "2x8:int64", ":int64=16000" or ":float32=0.5" (scalars with their values),
/// each also behind "NAME="; "NAME=0.5", a value for all elements; "?", nothing.
/// @throws ConfigError
InputSpec parse_input_spec(std::string_view text);

/// Writes the spec in the form that `parse_input_spec` reads.
std::string to_text(const InputSpec& spec);

/// Arranges the specs in the order of the graph's inputs: named ones where their inputs are, the
/// others in order from the first. The results have no names, and stay where they are if this is
/// done again. @throws ConfigError for unknown names, and for too many
std::vector<InputSpec> by_position(const std::vector<InputSpec>& specs, const Graph& graph);

/// Permitted changes to a network's inputs and outputs, as a user writes them.
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

/// The changes of InterfaceOptions in terms of the graph.
struct Interface {
  std::vector<StatePair> states;
  std::vector<std::pair<ValueDim, ValueDim>> tied;  ///< dimensions of states: removed together
  std::vector<ValueDim> free;                       ///< also those of states, and tables of words
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
