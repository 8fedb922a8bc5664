// What is asked of budgets of milliseconds.
#pragma once

#include <cstdint>
#include <string>

namespace parsimony {

/// A command of the user's that runs an ONNX file and prints its milliseconds.
struct LatencyCommand {
  std::string line = {};  ///< "ssh board ./time {model}"; its last number is milliseconds
  int runs = 3;           ///< of a network each time that it is measured
  double timeout = 60;    ///< seconds after which a run is stopped
  int retries = 3;        ///< of a run that fails
  double pause = 1;  ///< seconds before the first retry; each further pause is eight times as long

  bool operator==(const LatencyCommand&) const = default;
};

struct LatencySettings {
  LatencyCommand command = {};  ///< measures whole networks; no line: an engine does
  std::string table = {};       ///< path of the tables; empty: in the cache
  int64_t batch = 1;            ///< samples per run, if the network's batch is symbolic
  double tolerance = 0.05;      ///< relative deviation from the budget that is accepted
  int rounds = 0;               ///< maximum number of networks to measure; 0: 6, or 10 by a command

  bool operator==(const LatencySettings&) const = default;
};

}  // namespace parsimony
