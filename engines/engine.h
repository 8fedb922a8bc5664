// An engine runs networks: libtorch, ONNX Runtime.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "parsimony/engines/network.h"
#include "parsimony/graph/graph.h"

namespace parsimony {

struct Plan;

struct OpenOptions {
  /// Weights whose bytes remain valid during the network's lifetime. They need not be copied and
  /// may be streamed in every run; once inputs are bound, all of them are in memory.
  std::function<bool(const Weight&)> stays = {};
  /// Path of an ONNX file equivalent to the graph, for engines that read files. It must exist
  /// during the network's lifetime.
  std::function<std::string()> file = {};
};

class Engine {
 public:
  virtual ~Engine() = default;

  virtual std::string name() const = 0;  ///< "libtorch"
  virtual std::string version() const = 0;
  virtual std::string path() const { return {}; }  ///< of its library, if there is a separate file
  /// Returns whether the engine executes graphs, in float32 in place of float16, and records the
  /// operands of discrete choices. Other engines run files unchanged.
  virtual bool executes_graphs() const { return false; }

  /// Returns the engine to use if this one cannot run a network or finds a difference; null: none.
  virtual Engine* fallback() { return nullptr; }

  /// Opens the network of a graph, copying its weights unless the options say otherwise. @throws
  /// UnsupportedError, with the reason, if the engine cannot run it
  virtual std::unique_ptr<Network> open(const Graph& graph, const OpenOptions& options) = 0;
  std::unique_ptr<Network> open(const Graph& graph) { return open(graph, {}); }

  /// Opens the network with the plan's channels masked: it computes what the small network should,
  /// in the original's shapes. `options.file` has zeros in place of removed elements.
  virtual std::unique_ptr<Network> open_masked(const Graph& graph, const Plan& plan,
                                               const OpenOptions& options) = 0;

  /// Returns how many runs of small batches to make at the same time: one uses all of the engine's
  /// threads, or several a single one each. The results are the same.
  virtual int at_once() const { return 1; }
  /// Calls `work` with 0 … count - 1, at_once() at a time.
  virtual void side_by_side(int64_t count, const std::function<void(int64_t)>& work) {
    for (int64_t i = 0; i < count; ++i) work(i);
  }

  // Kernels for matrices that are stored by columns. They return false, and change nothing, if the
  // engine has none.

  /// C [rows, columns] = A B
  virtual bool multiply(int64_t /*rows*/, int64_t /*inner*/, int64_t /*columns*/,
                        const double* /*a*/, const double* /*b*/, double* /*c*/) const {
    return false;
  }
  /// Replaces B [n, columns] by the solution of A X = B for a symmetric A [n, n]; also false if A
  /// is not positive definite.
  virtual bool solve(int64_t /*n*/, const double* /*a*/, int64_t /*columns*/, double* /*b*/) const {
    return false;
  }
};

}  // namespace parsimony
