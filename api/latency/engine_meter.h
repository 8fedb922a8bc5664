// Times networks on an engine, for latency budgets.
#pragma once

#include <memory>
#include <vector>

#include "parsimony/api/latency/measure.h"
#include "parsimony/engines/engine.h"
#include "parsimony/engines/timing.h"
#include "parsimony/graph/input_spec.h"

namespace parsimony {

struct MeterOptions {
  std::vector<InputSpec> specs;  ///< of --input
  int64_t batch = 1;
  double seconds = 2;  ///< per measurement of a whole network
};

/// CPU seconds of this thread, which other load on the machine hardly affects.
double thread_seconds();

/// Measures on random inputs. The time of a subgraph is the lower quartile of as many runs as fit
/// into 3 ms, but between 6 and 30: noise can only add time.
class EngineMeter final : public LatencyMeter {
 public:
  /// The engine must outlive the meter.
  EngineMeter(Engine& engine, MeterOptions options, machine::Clock clock = machine::steady_seconds)
      : engine_(engine), options_(std::move(options)), clock_(std::move(clock)) {}

  std::vector<std::optional<double>> subgraphs(std::span<const Graph* const> graphs) override;
  std::optional<Pair> networks(const Graph& dense, const Graph& small) override;

 private:
  /// Opens the network and binds random inputs that it accepts.
  std::unique_ptr<Network> make_ready(const Graph& graph, const std::vector<InputSpec>& specs,
                                      bool with_batch) const;

  Engine& engine_;
  MeterOptions options_;
  machine::Clock clock_;
};

}  // namespace parsimony
