// Parts of networks, run on values that stay with the engine.
#pragma once

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
  bool alone = false;  ///< the next batch is made of what the network answers to this one
};

/// The next batch; empty after the last.
using ValueSource = std::function<std::optional<ValueBatch>()>;

/// Opened when it first runs and the types of its inputs are known.
class Part {
 public:
  /// Both must outlive it.
  Part(Engine& engine, const Graph& graph);

  /// From the graph's inputs to its outputs, which may be inputs. Several threads may call it.
  /// @throws UnsupportedError if it cannot be run
  EngineValues run(const EngineValues& inputs);

 private:
  Network& opened_for(const EngineValues& inputs);

  Engine& engine_;
  const Graph& graph_;
  std::vector<ValueId> computed_;  ///< outputs that are no inputs
  std::once_flag opening_;
  std::unique_ptr<Network> network_;
};

int64_t bytes_of(const EngineValue& value);

/// The dims behind the first one.
Shape sample_dims(const EngineValue& value);

}  // namespace parsimony
