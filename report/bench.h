// A comparison of models' run times.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "parsimony/base/types.h"
#include "parsimony/engines/machine/report.h"
#include "parsimony/engines/timing.h"

namespace parsimony {

struct BenchInput {
  std::string name;
  DType dtype = DType::kUnknown;
  Shape shape;
};

struct BenchModel {
  std::string label;  ///< its name in the table
  std::string path;
  std::string sha256;
  int64_t bytes = 0;               ///< of the file, without external data
  std::vector<BenchInput> inputs;  ///< of the first requested batch
};

struct BenchEngine {
  std::string name;     ///< "libtorch"
  std::string version;  ///< "2.15.0"
  std::string path;     ///< of the library; may be empty
};

/// The result of one model on one engine with one batch.
struct BenchRow {
  size_t model = 0;     ///< in BenchReport::models
  size_t engine = 0;    ///< in BenchReport::engines
  int64_t batch = 1;    ///< samples per run
  std::string refused;  ///< why it did not run; empty: it did
  int warm_up = 0;      ///< unmeasured runs
  machine::Summary time;
  std::optional<int64_t> peak_bytes;  ///< see Network::peak_bytes()
  /// The first model's time divided by this one's, on the same engine with the same batch; empty if
  /// one of them did not run.
  std::optional<machine::Ratio> speedup;

  /// Returns samples per second.
  double throughput() const;
};

struct BenchReport {
  std::vector<BenchModel> models;
  std::vector<BenchEngine> engines;
  std::vector<BenchRow> rows;  ///< grouped by engine and batch
  std::vector<std::string> notes;
  machine::MachineReport facts;  ///< without measurements
  int threads = 1;
  uint64_t seed = 1;
  std::string command;
};

/// Renders a table, the machine, and the caveats.
std::string to_text(const BenchReport& report);

/// Returns the object {"parsimony_bench": 1, …} described in docs/guide/bench.md.
std::string to_json(const BenchReport& report);

}  // namespace parsimony
