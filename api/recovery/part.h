// Parts of networks, run on values in the engine's memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "parsimony/engines/engine.h"
#include "parsimony/graph/graph.h"

namespace parsimony {

/// A network's input values for some samples, in the order of its inputs.
struct ValueBatch {
  EngineValues inputs;
  /// Outputs of the dense network that the next batch takes as inputs, as in a stream.
  std::vector<ValueId> fed_back = {};
};

/// Returns the next batch; empty after the last.
using ValueSource = std::function<std::optional<ValueBatch>()>;

/// Returns how many runs to make at once if each takes so much memory.
size_t runs_at_once(const Engine& engine, int64_t bytes);

/// A network that is opened on its first run, when the types of its inputs are known.
class Part {
 public:
  /// Both must outlive this.
  Part(Engine& engine, const Graph& graph);

  /// Computes the graph's outputs, which may be inputs. Thread-safe.
  /// @throws UnsupportedError if it cannot be run
  EngineValues run(const EngineValues& inputs);
  const Graph& graph() const { return graph_; }

 private:
  Network& opened_for(const EngineValues& inputs);

  Engine& engine_;
  const Graph& graph_;
  std::vector<ValueId> computed_;  ///< outputs that are not inputs
  std::once_flag opening_;
  std::unique_ptr<Network> network_;
};

int64_t bytes_of(const EngineValue& value);

/// Returns the dims after the first one.
Shape sample_dims(const EngineValue& value);

}  // namespace parsimony
