// What a budget of milliseconds needs: an engine, and tables that were measured before.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "parsimony/api/latency/engine_meter.h"
#include "parsimony/api/prune.h"
#include "parsimony/configs/latency_file.h"

namespace parsimony {

/// An engine with its tables, from the file that holds them to the file again.
class LatencyProfiler {
 public:
  /// Loads the engine and the tables.
  /// @throws UnsupportedError without the engine; ConfigError if the file that was named is of
  /// another machine, engine or number of threads, or is no such file
  explicit LatencyProfiler(const PruneOptions& options);

  /// For plan_pruning, which may add tables. This must outlive the options.
  void attach_to(PruneOptions& options);

  /// Writes the tables, if there are new ones. A cache that cannot be written is let be.
  void save();

  std::string engine() const { return file_.engine; }
  int threads() const { return file_.threads; }
  const LatencyTables& tables() const { return file_.tables; }

 private:
  std::string path_;
  bool named_ = false;  ///< by the user
  LatencyFile file_;
  size_t known_ = 0;
  std::unique_ptr<Engine> engine_;  // before the meter, which runs on it
  std::unique_ptr<EngineMeter> meter_;
};

}  // namespace parsimony
