// Times networks on an engine, for budgets of milliseconds.
#pragma once

#include <memory>
#include <vector>

#include "parsimony/api/latency/measure.h"
#include "parsimony/engines/engine.h"
#include "parsimony/engines/turns.h"
#include "parsimony/graph/input_spec.h"

namespace parsimony {

struct MeterOptions {
  std::vector<InputSpec> specs;  ///< of --input
  int64_t batch = 1;
  double seconds = 2;  ///< that a whole network may take per measurement
};

/// Seconds of processor time of this thread: what else runs on the machine does not count.
double thread_seconds();

/// Runs what it is given on random inputs. What a piece takes is the lower quartile of its runs,
/// of which there are as many as fit into 3 ms, but from 6 to 30: what else the machine does only
/// ever adds to it.
class EngineMeter final : public LatencyMeter {
 public:
  /// The engine must outlive the meter.
  EngineMeter(Engine& engine, MeterOptions options, machine::Clock clock = machine::steady_seconds)
      : engine_(engine), options_(std::move(options)), clock_(std::move(clock)) {}

  std::vector<std::optional<double>> pieces(std::span<const Graph* const> graphs) override;
  Pair networks(const Graph& dense, const Graph& small) override;

 private:
  /// With inputs bound that it takes.
  std::unique_ptr<Network> make_ready(const Graph& graph, const std::vector<InputSpec>& specs,
                                      bool with_batch) const;

  Engine& engine_;
  MeterOptions options_;
  machine::Clock clock_;
};

}  // namespace parsimony
