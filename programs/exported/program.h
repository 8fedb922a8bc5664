// A program of torch.export as a Graph.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "parsimony/graph/graph.h"
#include "parsimony/graph/interface.h"
#include "parsimony/programs/exported/archive.h"
#include "parsimony/programs/schema.h"
#include "parsimony/programs/sources.h"

namespace parsimony::programs {

/// A node of the program.
struct ProgramCall {
  std::string place;               ///< JSON pointer
  const Schema* schema = nullptr;  ///< null for functions on numbers
};

/// What one of the program's graphs calls a value of the Graph.
struct ProgramValue {
  std::string graph;  ///< JSON pointer
  std::string name;
  ValueId value;  ///< kNone if nothing reads it
  std::optional<Shape> dims = {};
};

struct Program {
  Graph graph;
  Sources sources;                                  ///< calls are numbers of `calls`
  std::vector<ProgramCall> calls;                   ///< those that were lowered
  std::vector<ProgramValue> values;                 ///< in the order of the program
  std::map<std::string, std::string> placeholders;  ///< of tensors: their names to values'
  /// Weights that it computes from literals, and its names of these values.
  std::map<std::string, std::vector<ProgramValue>> computed;
  std::vector<std::string> parameters;  ///< names of tensors, in the module's order
  std::vector<InputSpec> inputs;        ///< as the program was exported
  std::vector<InputSpec> sizes;         ///< as it was read
};

/// Where a program's own graph is.
inline constexpr const char* kTopGraph = "/graph_module/graph";

/// The graph that holds the node of that place.
std::string graph_of(const std::string& place);

/// What becomes of tensors that a program computes from literals alone, such as the frequencies of
/// a time embedding, `exp(arange(16) * -0.5)`.
enum class Literals : uint8_t {
  kAreWeights,  ///< held as weights, which can be cut
  kStay,        ///< not cut: a live module has no tensor that could be replaced
};

inline Literals literals_of(const Archive& archive) {
  return archive.is_live_module() ? Literals::kStay : Literals::kAreWeights;
}

/// Reads the program in an archive, which must outlive the result: weights are views of it, under
/// their names. Calls of unknown operators become nodes that pin what they read.
/// @param inputs  shapes by position; empty: those with which it was exported
/// @throws ModelError, naming the place, for what is not such a program; UnsupportedError
Program read_program(const Archive& archive, const std::vector<InputSpec>& inputs);
Program read_program(const JsonReader& json, const std::map<std::string, ArchivedTensor>& tensors,
                     const std::string& path, const std::vector<InputSpec>& inputs,
                     Literals literals);

}  // namespace parsimony::programs
