// What is asked of budgets of milliseconds, and what came of it.
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

/// What came of it. Times are in seconds.
struct LatencyOutcome {
  double wanted = 0;
  double dense = 0;      ///< the dense network: the shortest of several measurements
  double tables = 0;     ///< the dense network according to the tables, before correction
  double predicted = 0;  ///< the small network by the tables, scaled by the dense one
  double measured = 0;   ///< its interleaved time relative to the dense one, times `dense`
  double noise = 0;      ///< relative standard error of `measured`; 0 if not known
  int rounds = 0;        ///< networks measured; 0: `measured` is by the tables alone
  int subgraphs = 0;     ///< that the network has
  int fresh = 0;         ///< tables that were measured in this run
  double table_error =
      0;                 ///< median relative error of these at widths that they were not made from
  bool limited = false;  ///< other amounts than time leave no more than this

  bool holds(double tolerance) const {
    return measured > 0 && measured <= wanted * (1 + tolerance) &&
           (limited || measured >= wanted * (1 - tolerance));
  }
};

}  // namespace parsimony
