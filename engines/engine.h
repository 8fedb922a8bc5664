// What runs networks: libtorch, ONNX Runtime.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "parsimony/engines/network.h"
#include "parsimony/graph/graph.h"

namespace parsimony {

struct Plan;

struct OpenOptions {
  /// Weights whose bytes stay where they are for as long as the network lives. It need not copy
  /// them, and may read them anew in every run; once inputs are bound it holds all of them.
  std::function<bool(const Weight&)> stays = {};
  /// Where an ONNX file lies that says what the graph says, for engines that read files. It must
  /// stay there as long as the network lives.
  std::function<std::string()> file = {};
};

class Engine {
 public:
  virtual ~Engine() = default;

  virtual std::string name() const = 0;  ///< "libtorch"
  virtual std::string version() const = 0;
  virtual std::string path() const { return {}; }  ///< of its library, if that is a file of its own

  /// Makes the network ready that a graph describes, whose weights are copied unless the options
  /// say otherwise. @throws UnsupportedError, saying why, if the engine does not run it
  virtual std::unique_ptr<Network> open(const Graph& graph, const OpenOptions& options) = 0;
  std::unique_ptr<Network> open(const Graph& graph) { return open(graph, {}); }

  /// The same with the plan's channels absent: what the small network is to compute, in the
  /// original's shapes. `options.file` has zeros in place of what the plan removes.
  virtual std::unique_ptr<Network> open_masked(const Graph& graph, const Plan& plan,
                                               const OpenOptions& options) = 0;
};

}  // namespace parsimony
