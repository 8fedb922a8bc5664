#include "parsimony/report/ledger_point.h"

#include <cmath>
#include <limits>

#include "parsimony/report/errors.h"
#include "parsimony/report/json_impl.h"
#include "parsimony/report/parts_impl.h"

namespace parsimony {
namespace {

constexpr int64_t kVersion = 1;
constexpr size_t kMostShown = 40;  // characters of a wrong value in a message
constexpr int kDeepest = 100;      // lists within lists; what writes them again is recursive

/// JSON has neither NaN nor infinity: both are null there.
Json number(double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); }

Json to_object(const LedgerPoint::Pair& pair) {
  return {{"before", pair.before}, {"after", pair.after}};
}

Json to_object(const LedgerPoint::Score& score) {
  return {{"correct", score.correct}, {"total", score.total}};
}

Json to_object(const LedgerPoint::Evidence& proof) {
  if (!proof.ran) return {{"ran", false}, {"reason", proof.reason}};
  return {{"ran", true},
          {"difference", number(proof.difference)},
          {"tolerance", proof.tolerance},
          {"against", proof.against}};
}

/// A value of the line that knows where it stands.
class Field {
 public:
  Field(const Json& json, std::string_view place) : json_(json), place_(place) {}

  bool has(const char* key) const {
    const auto found = json_.find(key);
    return found != json_.end() && !found->is_null();
  }
  Field at(const char* key) const {
    if (!json_.is_object()) wanted("an object");
    const auto found = json_.find(key);
    if (found == json_.end()) fail("lacks \"" + std::string(key) + "\"");
    return Field(*found, *this, key);
  }

  std::string text() const {
    if (!json_.is_string()) wanted("a string");
    return json_.get<std::string>();
  }
  bool flag() const {
    if (!json_.is_boolean()) wanted("true or false");
    return json_.get<bool>();
  }
  int64_t count() const {
    constexpr uint64_t kMost = std::numeric_limits<int64_t>::max();
    if (!json_.is_number_unsigned() || json_.get<uint64_t>() > kMost) wanted("a count");
    return json_.get<int64_t>();
  }
  uint64_t seed() const {
    if (!json_.is_number_unsigned()) wanted("a seed, an integer from 0");
    return json_.get<uint64_t>();
  }
  int small() const {
    const int64_t value = count();
    if (value > std::numeric_limits<int>::max()) wanted("a small count");
    return static_cast<int>(value);
  }
  double seconds() const {
    if (!json_.is_number() || !(json_.get<double>() >= 0)) wanted("a number from 0");
    return json_.get<double>();
  }
  double number_or(double instead) const {
    if (json_.is_null()) return instead;
    if (!json_.is_number()) wanted("a number");
    return json_.get<double>();
  }
  std::string object() const {
    if (!json_.is_object()) wanted("an object");
    return json_.dump();
  }
  template <typename Read>
  auto list(Read read) const {
    if (!json_.is_array()) wanted("a list");
    std::vector<decltype(read(*this))> entries;
    for (const Json& entry : json_) entries.push_back(read(Field(entry, *this, "[]")));
    return entries;
  }

  [[noreturn]] void wanted(const std::string& what) const {
    std::string found = json_.is_array()    ? "a list"
                        : json_.is_object() ? "an object"
                                            : json_.dump();
    if (found.size() > kMostShown) found = found.substr(0, kMostShown) + "…";
    fail("found " + found + ", wanted " + what);
  }
  [[noreturn]] void fail(const std::string& what) const {
    throw errors::bad_ledger_line(place_, path(), what);
  }

 private:
  Field(const Json& json, const Field& parent, const char* key)
      : json_(json), place_(parent.place_), parent_(&parent), key_(key) {}

  std::string path() const {
    if (parent_ == nullptr) return {};
    const std::string before = parent_->path();
    return before.empty() || *key_ == '[' ? before + key_ : before + "." + key_;
  }

  const Json& json_;
  std::string_view place_;
  const Field* parent_ = nullptr;
  const char* key_ = nullptr;
};

LedgerPoint::Pair read_pair(const Field& at) {
  return {at.at("before").count(), at.at("after").count()};
}

LedgerPoint::Phases read_phases(const Field& at) {
  return {at.at("wait").seconds(), at.at("forward").seconds(), at.at("backward").seconds(),
          at.at("optimizer").seconds(), at.at("rest").seconds()};
}

LedgerPoint::Score read_score(const Field& at) {
  const LedgerPoint::Score score{at.at("correct").count(), at.at("total").count()};
  if (score.correct > score.total) at.fail("more are correct than there are");
  return score;
}

LedgerPoint::Epoch read_epoch(const Field& at) {
  return {at.at("seconds").seconds(),
          at.at("loss").number_or(std::numeric_limits<double>::quiet_NaN()), read_score(at)};
}

LedgerPoint::Layer read_layer(const Field& at) {
  return {at.at("name").text(), at.at("op").text(), at.at("before").count(),
          at.at("after").count()};
}

LedgerPoint::Evidence read_proof(const Field& at) {
  LedgerPoint::Evidence proof;
  proof.ran = at.at("ran").flag();
  if (!proof.ran) {
    proof.reason = at.at("reason").text();
    return proof;
  }
  proof.difference = at.at("difference").number_or(std::numeric_limits<double>::infinity());
  proof.tolerance = at.at("tolerance").seconds();
  proof.against = at.at("against").text();
  return proof;
}

void read_name(const Field& at, LedgerPoint& point) {
  point.criterion = at.at("criterion").text();
  const Field sparsity = at.at("sparsity");
  point.sparsity = sparsity.seconds();
  if (point.sparsity > 1) sparsity.wanted("a share, 0 to 1");
  point.seed = at.at("seed").seed();
}

void read_seconds(const Field& at, LedgerPoint& point) {
  point.warm_up = read_phases(at.at("warm_up"));
  point.prune_seconds = at.at("prune").seconds();
  point.train = read_phases(at.at("train"));
  point.evaluate_seconds = at.at("evaluate").seconds();
}

void read_accuracy(const Field& at, LedgerPoint& point) {
  point.before = read_score(at.at("before"));
  point.pruned = read_score(at.at("pruned"));
  point.after = read_score(at.at("after"));
}

LedgerPoint::Machine read_machine(const Field& at) {
  return {at.at("processor").text(), at.at("cores").small(), at.at("threads").small(),
          at.at("blas").text()};
}

Json parsed(std::string_view line, std::string_view place) {
  bool too_deep = false;
  const auto watch = [&](int depth, Json::parse_event_t, Json&) {
    too_deep |= depth > kDeepest;
    return !too_deep;
  };
  Json json = Json::parse(line, watch, false);
  if (too_deep) throw errors::bad_ledger_line(place, {}, "is nested too deeply");
  if (!json.is_object()) throw errors::bad_ledger_line(place, {}, "is no JSON object");
  return json;
}

}  // namespace

double LedgerPoint::Score::share() const {
  if (total == 0) return std::numeric_limits<double>::quiet_NaN();
  return static_cast<double>(correct) / static_cast<double>(total);
}

bool LedgerPoint::Epoch::operator==(const Epoch& other) const {
  const bool same_loss = loss == other.loss || (std::isnan(loss) && std::isnan(other.loss));
  return seconds == other.seconds && same_loss && score == other.score;
}

bool LedgerPoint::agrees_with(const LedgerPoint& other) const {
  return key == other.key && criterion == other.criterion && sparsity == other.sparsity &&
         seed == other.seed && params == other.params && macs == other.macs &&
         before == other.before && pruned == other.pruned && after == other.after &&
         layers == other.layers;
}

std::string to_json_line(const LedgerPoint& point) {
  const Json config = Json::parse(point.config, nullptr, false);
  if (!config.is_object()) throw errors::ledger_config();
  Json epochs = Json::array();
  for (const LedgerPoint::Epoch& epoch : point.epochs) {
    epochs.push_back({{"seconds", epoch.seconds},
                      {"loss", number(epoch.loss)},
                      {"correct", epoch.score.correct},
                      {"total", epoch.score.total}});
  }
  Json layers = Json::array();
  for (const LedgerPoint::Layer& layer : point.layers) {
    layers.push_back(
        {{"name", layer.name}, {"op", layer.op}, {"before", layer.before}, {"after", layer.after}});
  }
  Json kept = Json::array();
  for (const KeptWhole& whole : point.kept_whole) {
    kept.push_back({{"axis", whole.axis}, {"reason", whole.reason}});
  }
  Json json = {
      {"parsimony_ledger", kVersion},
      {"key", point.key},
      {"point",
       {{"criterion", point.criterion}, {"sparsity", point.sparsity}, {"seed", point.seed}}},
      {"model", {{"name", point.model.name}, {"sha256", point.model.sha256}}},
      {"data",
       {{"name", point.data.name},
        {"fingerprint", point.data.fingerprint},
        {"train", point.data.train},
        {"test", point.data.test}}},
      {"config", config},
      {"params", to_object(point.params)},
      {"macs", to_object(point.macs)},
      {"bytes", to_object(point.bytes)}};
  json["latency_ms"] = Json();
  if (point.latency_ms) {
    json["latency_ms"] = {{"before", point.latency_ms->before},
                          {"after", point.latency_ms->after},
                          {"batch", point.latency_ms->batch}};
  }
  json["seconds"] = {{"warm_up", to_object(point.warm_up)},
                     {"prune", point.prune_seconds},
                     {"train", to_object(point.train)},
                     {"evaluate", point.evaluate_seconds}};
  json["accuracy"] = {{"before", to_object(point.before)},
                      {"pruned", to_object(point.pruned)},
                      {"after", to_object(point.after)}};
  json["epochs"] = std::move(epochs);
  json["layers"] = std::move(layers);
  json["kept_whole"] = std::move(kept);
  json["proof"] = point.proof ? to_object(*point.proof) : Json();
  json["machine"] = {{"processor", point.machine.processor},
                     {"cores", point.machine.cores},
                     {"threads", point.machine.threads},
                     {"blas", point.machine.blas}};
  json["version"] = point.version;
  json["command"] = point.command;
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

LedgerPoint read_ledger_point(std::string_view line, std::string_view place) {
  const Json json = parsed(line, place);
  const Field at(json, place);
  const int64_t version = at.at("parsimony_ledger").count();
  if (version != kVersion) throw errors::ledger_version(place, version, kVersion);

  LedgerPoint point;
  point.key = at.at("key").text();
  if (point.key.empty()) at.at("key").wanted("a hash");
  read_name(at.at("point"), point);
  const Field model = at.at("model");
  point.model = {model.at("name").text(), model.at("sha256").text()};
  const Field data = at.at("data");
  point.data = {data.at("name").text(), data.at("fingerprint").text(), data.at("train").count(),
                data.at("test").count()};
  point.config = at.at("config").object();
  point.params = read_pair(at.at("params"));
  point.macs = read_pair(at.at("macs"));
  point.bytes = read_pair(at.at("bytes"));
  if (at.has("latency_ms")) {
    const Field latency = at.at("latency_ms");
    point.latency_ms = {latency.at("before").seconds(), latency.at("after").seconds(),
                        latency.at("batch").count()};
  }
  read_seconds(at.at("seconds"), point);
  read_accuracy(at.at("accuracy"), point);
  point.epochs = at.at("epochs").list(read_epoch);
  point.layers = at.at("layers").list(read_layer);
  point.kept_whole = at.at("kept_whole").list([](const Field& entry) {
    return KeptWhole{entry.at("axis").text(), entry.at("reason").text()};
  });
  if (at.has("proof")) point.proof = read_proof(at.at("proof"));
  point.machine = read_machine(at.at("machine"));
  point.version = at.at("version").text();
  point.command = at.at("command").text();
  return point;
}

}  // namespace parsimony
