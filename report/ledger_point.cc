#include "parsimony/report/ledger_point.h"

#include <cmath>
#include <limits>

#include "parsimony/base/errors.h"
#include "parsimony/base/json_reader.h"
#include "parsimony/report/parts_impl.h"

namespace parsimony {
namespace {

constexpr int64_t kVersion = 1;

}  // namespace

// The fields of a line are described once, for writing and reading.

void describe(auto& way, Is<LedgerPoint::Pair> auto& pair) {
  way("before", pair.before)("after", pair.after);
}

void describe(auto& way, Is<LedgerPoint::Score> auto& score) {
  way("correct", score.correct)("total", score.total);
  way.maybe("perplexity", score.perplexity);
  way.require(score.correct <= score.total, "more are correct than there are");
}

void describe(auto& way, Is<LedgerPoint::Epoch> auto& epoch) {
  way("seconds", epoch.seconds);
  way.finite_or("loss", epoch.loss, std::numeric_limits<double>::quiet_NaN());
  describe(way, epoch.score);
}

void describe(auto& way, Is<LedgerPoint::Evidence> auto& proof) {
  way("ran", proof.ran);
  if (!proof.ran) {
    way("reason", proof.reason);
    return;
  }
  way.finite_or("difference", proof.difference, std::numeric_limits<double>::infinity());
  way("tolerance", proof.tolerance)("against", proof.against);
}

void describe(auto& way, Is<LedgerPoint::Metric> auto& metric) {
  way("name", metric.name)("lower_is_better", metric.lower_is_better);
  way.finite_or("value", metric.value, std::numeric_limits<double>::quiet_NaN());
  way("failure", metric.failure);
  way.some("output", metric.output);
  way.some("picture", metric.picture);
}

void describe(auto& way, Is<LedgerPoint::Latency> auto& latency) {
  way("before", latency.before)("after", latency.after)("batch", latency.batch);
}

void describe(auto& way, Is<LedgerPoint::Model> auto& model) {
  way("name", model.name)("sha256", model.sha256);
}

void describe(auto& way, Is<LedgerPoint::Data> auto& data) {
  way("name", data.name)("fingerprint", data.fingerprint)("train", data.train)("test", data.test);
}

void describe(auto& way, Is<LedgerPoint::Machine> auto& machine) {
  way("processor", machine.processor)("cores", machine.cores);
  way("threads", machine.threads)("blas", machine.blas);
}

void describe(auto& way, Is<LedgerPoint::Ranks> auto& ranks) {
  way("step_bytes", ranks.step_bytes)("samples_per_second", ranks.samples_per_second);
  way.require(!ranks.samples_per_second.empty(), "there are no ranks");
}

void describe(auto& way, Is<LedgerPoint> auto& point) {
  way.name("key", point.key);
  way.inner("point", [&](auto& inner) {
    inner("criterion", point.criterion);
    inner.share("sparsity", point.sparsity);
    inner("seed", point.seed);
  });
  way("model", point.model)("data", point.data);
  way.json("config", point.config);
  way("params", point.params)("macs", point.macs)("bytes", point.bytes);
  way("latency_ms", point.latency_ms);
  way.inner("seconds", [&](auto& inner) {
    inner("warm_up", point.warm_up)("prune", point.prune_seconds);
    inner("train", point.train)("evaluate", point.evaluate_seconds);
  });
  way.maybe("ranks", point.ranks);
  way.inner("accuracy", [&](auto& inner) {
    inner("before", point.before)("pruned", point.pruned)("after", point.after);
  });
  way("epochs", point.epochs)("layers", point.layers)("kept_whole", point.unpruned_dims);
  way("proof", point.proof);
  way.some("metrics", point.metrics);
  way("machine", point.machine);
  way("version", point.version)("command", point.command);
}

namespace {

class Reading {
 public:
  explicit Reading(const JsonReader& at) : at_(at) {}

  Reading& operator()(const char* key, auto& value) {
    read(at_.at(key), value);
    return *this;
  }
  template <typename Entry>
  Reading& operator()(const char* key, std::optional<Entry>& entry) {
    const auto found = at_.find(key);
    if (!found || found->is_null()) return *this;
    entry = Entry{};
    read(*found, *entry);
    return *this;
  }
  Reading& maybe(const char* key, auto& entry) { return (*this)(key, entry); }
  void some(const char* key, auto& entries) {
    if (at_.find(key)) (*this)(key, entries);
  }
  void or_zero(const char* key, double& value) {
    if (at_.find(key)) (*this)(key, value);
  }
  void name(const char* key, std::string& text) { text = at_.at(key).name(); }
  void share(const char* key, double& value) { value = at_.at(key).number(kShare); }
  void finite_or(const char* key, double& value, double instead) {
    const JsonReader found = at_.at(key);
    value = found.is_null() ? instead : found.number();
  }
  void inner(const char* key, const auto& members) {
    Reading way(at_.at(key));
    members(way);
  }
  void json(const char* key, std::string& text) {
    if (!at_.at(key).is_object()) at_.at(key).wanted("an object");
    text = at_.at(key).json();
  }
  void require(bool holds, const char* why_not) {
    if (!holds) at_.fail(why_not);
  }

 private:
  static void read(const JsonReader& at, std::string& to) { to = at.text(); }
  static void read(const JsonReader& at, bool& to) { to = at.flag(); }
  static void read(const JsonReader& at, double& to) { to = at.number(kNotNegative); }
  static void read(const JsonReader& at, int& to) { to = at.small(0); }
  static void read(const JsonReader& at, int64_t& to) { to = at.count(); }
  static void read(const JsonReader& at, uint64_t& to) { to = at.unsigned_integer(); }
  template <typename Entry>
  static void read(const JsonReader& at, std::vector<Entry>& to) {
    for (const JsonReader entry : at.list()) read(entry, to.emplace_back());
  }
  template <typename Struct>
  static void read(const JsonReader& at, Struct& to) {
    Reading way(at);
    describe(way, to);
  }

  JsonReader at_;
};

}  // namespace

double LedgerPoint::Phases::total() const {
  double sum = 0;
  for (const TrainingPhase& phase : kTrainingPhases) sum += this->*phase.seconds;
  return sum;
}

std::vector<TrainingPhase> phases_in(const LedgerPoint::Phases& seconds) {
  std::vector<TrainingPhase> phases(kTrainingPhases.begin(), kTrainingPhases.end());
  if (seconds.exchange == 0) phases.pop_back();
  return phases;
}

double LedgerPoint::Score::share() const {
  if (total == 0) return std::numeric_limits<double>::quiet_NaN();
  return static_cast<double>(correct) / static_cast<double>(total);
}

bool LedgerPoint::Epoch::operator==(const Epoch& other) const {
  const bool same_loss = loss == other.loss || (std::isnan(loss) && std::isnan(other.loss));
  return seconds == other.seconds && same_loss && score == other.score;
}

bool LedgerPoint::Metric::operator==(const Metric& other) const {
  const bool same = value == other.value || (std::isnan(value) && std::isnan(other.value));
  return same && name == other.name && lower_is_better == other.lower_is_better &&
         failure == other.failure && output == other.output && picture == other.picture;
}

bool LedgerPoint::agrees_with(const LedgerPoint& other) const {
  return key == other.key && criterion == other.criterion && sparsity == other.sparsity &&
         seed == other.seed && params == other.params && macs == other.macs &&
         before == other.before && pruned == other.pruned && after == other.after &&
         layers == other.layers;
}

std::string to_json_line(const LedgerPoint& point) {
  JsonWriter way;
  way("parsimony_ledger", kVersion);
  describe(way, point);
  return way.taken().dump(-1, ' ', false, Json::error_handler_t::replace);
}

LedgerPoint read_ledger_point(std::string_view line, std::string_view place) {
  const JsonDocument document(line, place, throw_as<ModelError>, true);
  const int64_t version = document.root().at("parsimony_ledger").count();
  if (version != kVersion) {
    throw UnsupportedError(place, ": a ledger line of version ", version,
                           ", but this Parsimony reads version ", kVersion);
  }
  LedgerPoint point;
  Reading way(document.root());
  describe(way, point);
  return point;
}

}  // namespace parsimony
