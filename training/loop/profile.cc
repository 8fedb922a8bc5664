#include "parsimony/training/loop/profile.h"

#include <cstdio>
#include <utility>

#include "parsimony/base/files.h"

namespace parsimony::training {

Phases& operator+=(Phases& to, const Phases& from) {
  for (const TrainingPhase& phase : kTrainingPhases) to.*phase.seconds += from.*phase.seconds;
  return to;
}

void Trace::add(const char* name, Clock::time_point begin, Clock::time_point end, int row) {
  constexpr size_t kMost = 2'000'000;
  const std::lock_guard lock(mutex_);
  if (events_.size() < kMost) events_.push_back({name, begin, end, row});
}

std::string Trace::text() const {
  const auto micros = [](Clock::duration d) {
    return std::chrono::duration<double, std::micro>(d).count();
  };
  const std::lock_guard lock(mutex_);
  std::string text;
  for (const Event& event : events_) {
    char line[160];
    std::snprintf(line, sizeof line,
                  R"({"name":"%s","ph":"X","pid":%d,"tid":%d,"ts":%.1f,"dur":%.1f})", event.name,
                  rank_, event.row, micros(event.begin - begin_), micros(event.end - event.begin));
    text += (text.empty() ? "" : ",\n") + std::string(line);
  }
  return text;
}

void write_trace(const std::string& path, const std::vector<std::string>& texts) {
  NewFile file(path);
  file.write("{\"displayTimeUnit\":\"ms\",\"traceEvents\":[");
  bool first = true;
  for (const std::string& text : texts) {
    if (!text.empty()) file.write((std::exchange(first, false) ? "\n" : ",\n") + text);
  }
  file.write("\n]}\n");
  file.commit();
}

void PhaseWatch::charge(double Phases::*phase, const char* name, Trace::Clock::time_point now) {
  phases_.*phase += std::chrono::duration<double>(now - since_).count();
  if (trace_ != nullptr) trace_->add(name, since_, now);
  since_ = now;
}

}  // namespace parsimony::training
