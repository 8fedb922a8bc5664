// What a latency budget needs: an engine, and tables from earlier runs.
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

/// An engine with its latency tables, which are loaded from and saved to a file.
class LatencyProfiler {
 public:
  /// Loads the engine and the tables.
  /// @throws UnsupportedError without the engine; ConfigError if the given file is for another
  /// machine, engine or number of threads, or malformed
  explicit LatencyProfiler(const PruneOptions& options);

  /// Attaches meter and tables to the options; plan_pruning may add tables. This must outlive the
  /// options.
  void attach_to(PruneOptions& options);

  /// Writes the tables if there are new ones. Failure to write the cache is ignored.
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
