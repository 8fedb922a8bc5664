// Parts of networks, run on values that stay with the engine that computes them.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "parsimony/base/types.h"
#include "parsimony/graph/graph.h"

namespace parsimony {

/// A tensor in the engine's own form; null: none.
using Held = std::shared_ptr<const void>;

/// What a network takes for some samples, in the order of its inputs.
struct HeldBatch {
  std::vector<Held> inputs;
  bool alone = false;  ///< the next batch is made of what the network answers to this one
};

/// The next batch; empty after the last.
using HeldFeed = std::function<std::optional<HeldBatch>()>;

class Part {
 public:
  virtual ~Part() = default;
  /// From the part's inputs to its outputs. Several threads may call it.
  virtual std::vector<Held> run(const std::vector<Held>& inputs) = 0;
};

class Parts {
 public:
  virtual ~Parts() = default;

  /// With the weights that the part's nodes read, as they are now.
  /// @throws UnsupportedError if it cannot be run
  virtual std::unique_ptr<Part> open(const Graph& part) = 0;

  virtual Shape dims_of(const Held& value) const = 0;
  virtual int64_t bytes_of(const Held& value) const = 0;

  /// How many batches run at the same time.
  virtual int at_once() const { return 1; }
  /// Calls `work` with 0 … count - 1.
  virtual void side_by_side(int64_t count, const std::function<void(int64_t)>& work) {
    for (int64_t i = 0; i < count; ++i) work(i);
  }
};

}  // namespace parsimony
