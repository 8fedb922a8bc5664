#include <array>
#include <charconv>
#include <cmath>
#include <limits>

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

/// The names of the columns, and the cells of a line under them.
class Line {
 public:
  Line& operator()(const std::string& name, const std::string& cell) {
    const char* gap = names_.empty() ? "" : ",";
    names_ += gap + quoted(name);
    cells_ += gap + quoted(cell);
    return *this;
  }
  Line& operator()(const std::string& name, double value) { return (*this)(name, number(value)); }
  Line& operator()(const std::string& name, int64_t value) {
    return (*this)(name, std::to_string(value));
  }
  Line& operator()(const std::string& name, const LedgerPoint::Pair& pair) {
    return (*this)(name + "_before", pair.before)(name + "_after", pair.after);
  }
  Line& operator()(const std::string& name, const LedgerPoint::Score& score) {
    constexpr double kNothing = std::numeric_limits<double>::quiet_NaN();
    (*this)(name + "_correct", score.correct)(name + "_total", score.total);
    return (*this)(name + "_perplexity", score.perplexity.value_or(kNothing));
  }
  Line& operator()(const std::string& name, const LedgerPoint::Phases& phases) {
    for (const TrainingPhase& phase : kTrainingPhases) {
      (*this)(name + "_" + phase.name + "_s", phases.*phase.seconds);
    }
    return *this;
  }
  std::string names() const { return names_ + "\r\n"; }
  std::string cells() const { return cells_ + "\r\n"; }

 private:
  std::string names_, cells_;
};

Line line_of(const SweepRow& row, const std::vector<std::string>& metrics) {
  constexpr double kNothing = std::numeric_limits<double>::quiet_NaN();
  const LedgerPoint& point = row.point;
  const auto& latency = point.latency_ms;
  const bool proven = point.proof && point.proof->ran;
  Line line;
  line("key", point.key)("series", row.series)("criterion", point.criterion);
  line("sparsity", point.sparsity)("seed", std::to_string(point.seed));
  line("model", point.model.name)("data", point.data.name);
  line("train_examples", point.data.train)("test_examples", point.data.test);
  line("params", point.params)("macs", point.macs)("bytes", point.bytes);
  line("latency_before_ms", latency ? latency->before : kNothing);
  line("latency_after_ms", latency ? latency->after : kNothing);
  line("latency_batch", latency ? std::to_string(latency->batch) : "");
  line("warm_up", point.warm_up)("prune_s", point.prune_seconds)("train", point.train);
  line("evaluate_s", point.evaluate_seconds)("train_s", point.train.total());
  line("train_speedup", row.train_speedup.value_or(kNothing));
  line("epochs", int64_t{std::ssize(point.epochs)});
  line("before", point.before)("pruned", point.pruned)("after", point.after);
  line("compared_with", row.dense ? "dense" : point.sparsity > 0 ? "before" : "itself");
  line("compared", row.reference)("accuracy_change", row.change);
  line("proof_difference", proven ? point.proof->difference : kNothing);
  line("proof_tolerance", proven ? point.proof->tolerance : kNothing);
  line("processor", point.machine.processor)("cores", int64_t{point.machine.cores});
  line("threads", int64_t{point.machine.threads})("blas", point.machine.blas);
  line("version", point.version);
  for (const std::string& name : metrics) line(name, metric_of(point, name));
  return line;
}

}  // namespace

std::string to_csv(const SweepReport& report) {
  const SweepRow none;  // a temporary misleads GCC 12
  std::string text = line_of(none, report.metrics).names();
  for (const SweepRow& row : report.rows) text += line_of(row, report.metrics).cells();
  return text;
}

}  // namespace parsimony
