// Where an epoch's seconds go, batch by batch.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "parsimony/report/ledger_point.h"

namespace parsimony::training {

using Phases = LedgerPoint::Phases;

Phases& operator+=(Phases& to, const Phases& from);

/// Collects events for the trace viewer of Chrome (chrome://tracing, ui.perfetto.dev). Holds no
/// more than two million.
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

/// Charges time to the phase that runs. `trace` may be null.
class Stopwatch {
 public:
  explicit Stopwatch(Trace* trace) : trace_(trace), since_(Trace::Clock::now()) {}

  /// What ran until now was this.
  void charge(double Phases::*phase, const char* name);
  /// The clock goes on, and nobody is charged.
  void skip() { since_ = Trace::Clock::now(); }

  const Phases& phases() const { return phases_; }

 private:
  Trace* trace_;
  Trace::Clock::time_point since_;
  Phases phases_;
};

}  // namespace parsimony::training
