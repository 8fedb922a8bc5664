// Latency budgets: timing networks with an engine, or with a command that may run them on another
// device; and the tables from earlier runs.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "parsimony/api/latency/measure.h"
#include "parsimony/api/prune_request.h"
#include "parsimony/base/files.h"
#include "parsimony/configs/latency_file.h"
#include "parsimony/engines/engine.h"
#include "parsimony/engines/timing.h"
#include "parsimony/graph/interface.h"

namespace parsimony {

/// Runs the command on an ONNX file. @returns seconds
/// @throws ModelError if it fails, takes too long or prints no number above 0 in every attempt
double seconds_by(const LatencyCommand& command, const std::string& model);

/// Measures networks by passing them to a command as ONNX files. The times of a network are
/// averaged, excluding those that deviate by more than a quarter from their median; the scatter of
/// the command's times is estimated from all networks together. Earlier times of a network are
/// reused when it is measured again.
class CommandMeter final : public LatencyMeter {
 public:
  /// @param layers  measures subgraphs; null: the command does, once each. Must outlive the meter.
  CommandMeter(LatencyCommand command, LatencyMeter* layers)
      : command_(std::move(command)), layers_(layers) {}

  std::vector<std::optional<double>> subgraphs(std::span<const Graph* const> graphs) override;
  /// Measures the dense network only once, with three times as many runs.
  std::optional<Pair> networks(const Graph& dense, const Graph& small) override;

 private:
  using Times = std::vector<double>;

  /// Runs the network `runs` more times. @returns all its times
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

/// Returns the CPU seconds of this thread, which hardly depend on other load on the machine.
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

/// Measures for latency budgets, with tables that are loaded from and saved to a file: on an
/// engine, by a command, or not at all if the file belongs to another machine.
class LatencyProfiler {
 public:
  /// Loads the engine and the tables. With a command, the engine measures layers unless a file is
  /// specified; then the command measures the layers too, once each, for that file.
  /// @throws UnsupportedError without the engine; ConfigError if the file belongs to another
  /// command, engine or number of threads, or is malformed
  explicit LatencyProfiler(const PruneRequest& request);
  /// Saves the measurements made before a failure.
  ~LatencyProfiler();
  LatencyProfiler(const LatencyProfiler&) = delete;
  LatencyProfiler& operator=(const LatencyProfiler&) = delete;

  LatencyMeter& meter() { return meter_ ? *meter_ : *layers_; }
  /// The tables, to which plan_pruning() adds.
  LatencyTables& tables() { return file_.tables; }

  /// Writes the tables if there are new ones. Failure to write the cache is ignored.
  void save();

  std::string engine() const { return file_.engine; }
  int threads() const { return file_.threads; }
  /// The command that measures whole networks; empty: an engine does, or nothing.
  const std::string& command() const { return command_; }
  /// The machine of the tables if nothing can be measured; empty if networks are measured.
  const std::string& other_machine() const { return other_machine_; }
  const LatencyTables& tables() const { return file_.tables; }

 private:
  void use_engine(const PruneRequest& request);

  std::string path_;
  bool named_ = false;  ///< by the user
  LatencyFile file_;
  std::string command_;
  std::string other_machine_;
  size_t known_ = 0;
  std::unique_ptr<Engine> engine_;  // before the meters, which run on it
  std::unique_ptr<EngineMeter> layers_;
  std::unique_ptr<LatencyMeter> meter_;  ///< null: `layers_`
};

}  // namespace parsimony
