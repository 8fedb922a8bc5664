// Statistics of activations, measured on any engine.
#pragma once

#include <cstdint>
#include <memory>

#include "parsimony/api/prune.h"
#include "parsimony/engines/engine.h"
#include "parsimony/pruners/statistics.h"

namespace parsimony {

/// The measures that need no gradients, and second moments of what matrices read, over batches.
/// Outputs are added to the network; the moments of a run are summed by the engine in float32,
/// those of all runs in double. Memory depends on the network, not on the number of samples.
class ForwardStatistics {
 public:
  /// The engine and the graph must outlive it. @param needs  others than these are left out
  ForwardStatistics(Engine& engine, const Graph& graph, const Facts& facts,
                    const Coupling& coupling, const Needs& needs);
  ~ForwardStatistics();

  /// Is nothing of that needed?
  bool empty() const;
  /// So many samples to a run: all activations that are needed come back at once.
  int64_t batch() const;
  /// @param inputs  of the network. @throws UnsupportedError if it cannot be run
  void add(const EngineValues& inputs, int64_t samples);
  void finish(Statistics& statistics) const;
  /// Memory of the sums.
  int64_t bytes() const;

 private:
  class Moments;
  struct State;
  std::unique_ptr<State> state_;
};

/// These of calibration data.
/// @throws ConfigError, IoError for the data; ModelError if they do not fit; UnsupportedError for
/// what cannot be run
Statistics measure_on(Engine& engine, const Graph& graph, const Facts& facts,
                      const Coupling& coupling, const Needs& needs, const CalibrationData& data);

/// Does the measure need no gradients?
bool is_forward(Measure measure);

}  // namespace parsimony
