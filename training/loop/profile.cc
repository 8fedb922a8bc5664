#include "parsimony/training/loop/profile.h"

#include <cstdio>

#include "parsimony/base/files.h"

namespace parsimony::training {

Phases& operator+=(Phases& to, const Phases& from) {
  to.wait += from.wait;
  to.forward += from.forward;
  to.backward += from.backward;
  to.optimizer += from.optimizer;
  to.rest += from.rest;
  return to;
}

void Trace::add(const char* name, Clock::time_point begin, Clock::time_point end) {
  constexpr size_t kMost = 2'000'000;
  if (events_.size() < kMost) events_.push_back({name, begin, end});
}

void Trace::write(const std::string& path) const {
  NewFile file(path);
  file.write("{\"displayTimeUnit\":\"ms\",\"traceEvents\":[");
  const auto micros = [](Clock::duration d) {
    return std::chrono::duration<double, std::micro>(d).count();
  };
  std::string text;
  for (const Event& event : events_) {
    text = &event == events_.data() ? "\n" : ",\n";
    char line[160];
    std::snprintf(line, sizeof line,
                  R"({"name":"%s","ph":"X","pid":1,"tid":1,"ts":%.1f,"dur":%.1f})", event.name,
                  micros(event.begin - events_.front().begin), micros(event.end - event.begin));
    file.write(text + line);
  }
  file.write("\n]}\n");
  file.commit();
}

void Stopwatch::charge(double Phases::*phase, const char* name) {
  const Trace::Clock::time_point now = Trace::Clock::now();
  phases_.*phase += std::chrono::duration<double>(now - since_).count();
  if (trace_ != nullptr) trace_->add(name, since_, now);
  since_ = now;
}

}  // namespace parsimony::training
