// What a latency budget needs: an engine, and tables from earlier runs.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "parsimony/api/latency/meters.h"
#include "parsimony/api/prune_request.h"
#include "parsimony/configs/latency_file.h"

namespace parsimony {

/// Measures for latency budgets, with tables that are loaded from and saved to a file: on an
/// engine, by a command, or not at all, where the file named is of another machine.
class LatencyProfiler {
 public:
  /// Loads the engine and the tables. With a command the engine measures layers, unless a file is
  /// named: then the command measures these too, once each, for that file.
  /// @throws UnsupportedError without the engine; ConfigError if the given file is of another
  /// command, engine or number of threads, or malformed
  explicit LatencyProfiler(const PruneRequest& request);
  /// Saves what was measured before a failure.
  ~LatencyProfiler();
  LatencyProfiler(const LatencyProfiler&) = delete;
  LatencyProfiler& operator=(const LatencyProfiler&) = delete;

  LatencyMeter& meter() { return meter_ ? *meter_ : *layers_; }
  /// plan_pruning() adds to them.
  LatencyTables& tables() { return file_.tables; }

  /// Writes the tables if there are new ones. Failure to write the cache is ignored.
  void save();

  std::string engine() const { return file_.engine; }
  int threads() const { return file_.threads; }
  /// That measures whole networks; empty: an engine does, or nothing.
  const std::string& command() const { return command_; }
  /// Whose tables are all there is; empty: networks are measured.
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
