// Profiles an epoch, batch by batch.
#pragma once

#include <chrono>
#include <mutex>
#include <string>
#include <vector>

#include "parsimony/report/ledger.h"

namespace parsimony::training {

using Phases = LedgerPoint::Phases;

Phases& operator+=(Phases& to, const Phases& from);

/// Collects events for Chrome's trace viewer (chrome://tracing, ui.perfetto.dev), at most two
/// million. Thread-safe.
/// @source "Trace Event Format", complete events
class Trace {
 public:
  using Clock = std::chrono::steady_clock;

  /// Times count from construction. @param rank  shown as a separate process
  explicit Trace(int rank = 0) : rank_(rank) {}

  /// @param row  of the display; overlapping events are in different rows
  void add(const char* name, Clock::time_point begin, Clock::time_point end, int row = 1);
  /// Returns the events as JSON, one per line.
  std::string text() const;

 private:
  struct Event {
    const char* name;
    Clock::time_point begin;
    Clock::time_point end;
    int row;
  };
  const int rank_;
  const Clock::time_point begin_ = Clock::now();
  mutable std::mutex mutex_;  ///< of the events
  std::vector<Event> events_;
};

/// Writes the traces of all ranks to a file. @throws IoError
void write_trace(const std::string& path, const std::vector<std::string>& texts);

/// Attributes time to phases. `trace` may be null.
class PhaseWatch {
 public:
  explicit PhaseWatch(Trace* trace) : trace_(trace), since_(Trace::Clock::now()) {}

  /// Attributes the time since the last call to this phase.
  void charge(double Phases::*phase, const char* name,
              Trace::Clock::time_point now = Trace::Clock::now());
  /// Restarts the clock without attributing the time.
  void skip() { since_ = Trace::Clock::now(); }

  const Phases& phases() const { return phases_; }

 private:
  Trace* trace_;
  Trace::Clock::time_point since_;
  Phases phases_;
};

}  // namespace parsimony::training
