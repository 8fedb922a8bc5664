// Times networks for latency budgets: by a command, which may run them on another device, or on an
// engine.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "parsimony/api/latency/measure.h"
#include "parsimony/api/prune_request.h"
#include "parsimony/base/files.h"
#include "parsimony/engines/engine.h"
#include "parsimony/engines/timing.h"
#include "parsimony/graph/interface.h"

namespace parsimony {

/// Runs the command on an ONNX file. @returns seconds
/// @throws ModelError if it fails, takes too long or prints no number above 0 in every attempt
double seconds_by(const LatencyCommand& command, const std::string& model);

/// Networks are written as ONNX files and given to a command. The times of a network are averaged
/// without those that deviate by more than a quarter from their median; how much the command's
/// times scatter is estimated from all networks together. What was measured of a network counts
/// when it is measured again.
class CommandMeter final : public LatencyMeter {
 public:
  /// @param layers  measures subgraphs; null: the command does, once each. Must outlive the meter.
  CommandMeter(LatencyCommand command, LatencyMeter* layers)
      : command_(std::move(command)), layers_(layers) {}

  std::vector<std::optional<double>> subgraphs(std::span<const Graph* const> graphs) override;
  /// The dense network is measured at first only, with three times as many runs.
  std::optional<Pair> networks(const Graph& dense, const Graph& small) override;

 private:
  using Times = std::vector<double>;

  /// Runs the network `runs` times more. @returns all its times
  const Times& measured(const std::string& model, int runs);
  /// The relative standard deviation of a time.
  double scatter() const;

  LatencyCommand command_;
  LatencyMeter* layers_;
  TemporaryFolder folder_;
  std::map<std::string, Times> times_;  ///< by the SHA-256 of the file
};

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
