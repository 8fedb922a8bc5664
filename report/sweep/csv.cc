#include <array>
#include <charconv>
#include <cmath>

#include "parsimony/report/sweep/summary.h"

namespace parsimony {
namespace {

/// As many digits as bring the same number back; nothing for what is none.
std::string number(double value) {
  if (!std::isfinite(value)) return {};
  std::array<char, 64> text{};
  const auto [end, error] = std::to_chars(text.data(), text.data() + text.size(), value);
  return {text.data(), end};
}

/// @source RFC 4180
std::string quoted(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"') out += '"';
    out += c;
  }
  return out + '"';
}

class Line {
 public:
  void add(const std::string& cell) {
    if (!text_.empty() || !first_) text_ += ',';
    first_ = false;
    text_ += quoted(cell);
  }
  void add(double value) { add(number(value)); }
  void add(int64_t value) { add(std::to_string(value)); }
  void add(const LedgerPoint::Pair& pair) {
    add(pair.before);
    add(pair.after);
  }
  void add(const LedgerPoint::Score& score) {
    add(score.correct);
    add(score.total);
  }
  void add(const LedgerPoint::Phases& phases) {
    for (const double seconds :
         {phases.wait, phases.forward, phases.backward, phases.optimizer, phases.rest}) {
      add(seconds);
    }
  }
  std::string text() const { return text_ + "\r\n"; }

 private:
  std::string text_;
  bool first_ = true;
};

constexpr const char* kNames =
    "key,series,criterion,sparsity,seed,model,data,train_examples,test_examples,"
    "params_before,params_after,macs_before,macs_after,bytes_before,bytes_after,"
    "latency_before_ms,latency_after_ms,latency_batch,"
    "warm_up_wait_s,warm_up_forward_s,warm_up_backward_s,warm_up_optimizer_s,warm_up_rest_s,"
    "prune_s,train_wait_s,train_forward_s,train_backward_s,train_optimizer_s,train_rest_s,"
    "evaluate_s,train_s,train_speedup,epochs,before_correct,before_total,pruned_correct,"
    "pruned_total,after_correct,after_total,compared_with,compared_correct,compared_total,"
    "accuracy_change,proof_difference,proof_tolerance,processor,cores,threads,blas,version\r\n";

std::string line_of(const SweepRow& row) {
  const LedgerPoint& point = row.point;
  Line line;
  for (const std::string& cell : {point.key, row.series, point.criterion}) line.add(cell);
  line.add(point.sparsity);
  line.add(std::to_string(point.seed));
  line.add(point.model.name);
  line.add(point.data.name);
  line.add(point.data.train);
  line.add(point.data.test);
  line.add(point.params);
  line.add(point.macs);
  line.add(point.bytes);
  line.add(point.latency_ms ? number(point.latency_ms->before) : "");
  line.add(point.latency_ms ? number(point.latency_ms->after) : "");
  line.add(point.latency_ms ? std::to_string(point.latency_ms->batch) : "");
  line.add(point.warm_up);
  line.add(point.prune_seconds);
  line.add(point.train);
  line.add(point.evaluate_seconds);
  line.add(point.train.total());
  line.add(row.train_speedup ? number(*row.train_speedup) : "");
  line.add(std::ssize(point.epochs));
  line.add(point.before);
  line.add(point.pruned);
  line.add(point.after);
  line.add(std::string(row.dense ? "dense" : point.sparsity > 0 ? "before" : "itself"));
  line.add(row.reference);
  line.add(row.change);
  const bool proven = point.proof && point.proof->ran;
  line.add(proven ? number(point.proof->difference) : "");
  line.add(proven ? number(point.proof->tolerance) : "");
  line.add(point.machine.processor);
  line.add(int64_t{point.machine.cores});
  line.add(int64_t{point.machine.threads});
  line.add(point.machine.blas);
  line.add(point.version);
  return line.text();
}

}  // namespace

std::string to_csv(const SweepReport& report) {
  std::string text = kNames;
  for (const SweepRow& row : report.rows) text += line_of(row);
  return text;
}

}  // namespace parsimony
