// Profiles an epoch, batch by batch.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "parsimony/report/ledger_point.h"

namespace parsimony::training {

using Phases = LedgerPoint::Phases;

Phases& operator+=(Phases& to, const Phases& from);

/// Collects events for Chrome's trace viewer (chrome://tracing, ui.perfetto.dev), at most two
/// million.
/// @source "Trace Event Format", complete events
class Trace {
 public:
  using Clock = std::chrono::steady_clock;

  void add(const char* name, Clock::time_point begin, Clock::time_point end);
  /// @throws IoError
  void write(const std::string& path) const;

 private:
  struct Event {
    const char* name;
    Clock::time_point begin;
    Clock::time_point end;
  };
  std::vector<Event> events_;
};

/// Attributes time to phases. `trace` may be null.
class Stopwatch {
 public:
  explicit Stopwatch(Trace* trace) : trace_(trace), since_(Trace::Clock::now()) {}

  /// Attributes the time since the last call to this phase.
  void charge(double Phases::*phase, const char* name);
  /// Restarts the clock without attributing the time.
  void skip() { since_ = Trace::Clock::now(); }

  const Phases& phases() const { return phases_; }

 private:
  Trace* trace_;
  Trace::Clock::time_point since_;
  Phases phases_;
};

}  // namespace parsimony::training
