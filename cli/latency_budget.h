// What a budget of milliseconds needs on the command line: an engine, and tables that were measured
// before.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "parsimony/api/prune.h"
#include "parsimony/cli/latency_meter.h"
#include "parsimony/configs/latency_file.h"

namespace parsimony::cli {

struct LatencyBudgetArguments {
  std::string engine = "libtorch";
  std::string onnxruntime;  ///< path of its library; empty: where it is usually found
  std::string table;        ///< file of the tables; empty: in the cache
  int64_t batch = 1;
};

/// Adds --engine, --onnxruntime, --latency-table and --batch.
void add_latency_options(CLI::App& command, LatencyBudgetArguments& arguments);

/// Does the configuration ask for milliseconds?
bool asks_for_latency(const ConfigList& config);

/// An engine with its tables, from the file that holds them to the file again.
class LatencyWorkshop {
 public:
  /// Loads the engine and the tables. `specs` are those of --input.
  /// @throws UnsupportedError without the engine; ConfigError if the file that was named is of
  /// another machine, engine or number of threads, or is no such file
  LatencyWorkshop(const LatencyBudgetArguments& arguments, std::optional<int> threads,
                  std::vector<InputSpec> specs);

  /// For plan_pruning, which may add tables.
  void lend(PruneOptions& options);

  /// Writes the tables, if there are new ones. A cache that cannot be written is let be.
  void save();

  std::string engine() const { return file_.engine; }
  int threads() const { return file_.threads; }
  const LatencyTables& tables() const { return file_.tables; }

 private:
  std::string path_;
  bool named_ = false;  ///< by the user
  int64_t batch_ = 1;
  LatencyFile file_;
  size_t known_ = 0;
  std::unique_ptr<Engine> engine_;  // before the meter, which runs on it
  std::unique_ptr<EngineMeter> meter_;
};

}  // namespace parsimony::cli
