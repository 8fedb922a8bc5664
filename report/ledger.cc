#include "parsimony/report/ledger.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cmath>
#include <filesystem>
#include <limits>
#include <map>
#include <string_view>

#include "parsimony/base/errors.h"
#include "parsimony/base/files.h"
#include "parsimony/base/json_reader.h"
#include "parsimony/report/parts_impl.h"

namespace parsimony {
namespace {

constexpr int64_t kVersion = 2;

}  // namespace

// The fields of a line are described once, for writing and reading.

void describe(auto& json, Is<LedgerPoint::Pair> auto& pair) {
  json("before", pair.before)("after", pair.after);
}

void describe(auto& json, Is<LedgerPoint::Score> auto& score) {
  json("correct", score.correct)("total", score.total);
  json.maybe("perplexity", score.perplexity);
  json.require(score.correct <= score.total, "more correct samples than samples");
}

void describe(auto& json, Is<LedgerPoint::Epoch> auto& epoch) {
  json("seconds", epoch.seconds);
  json.finite_or("loss", epoch.loss, std::numeric_limits<double>::quiet_NaN());
  describe(json, epoch.score);
}

void describe(auto& json, Is<LedgerPoint::Evidence> auto& proof) {
  json("ran", proof.ran);
  if (!proof.ran) {
    json("reason", proof.reason);
    return;
  }
  json.finite_or("difference", proof.difference, std::numeric_limits<double>::infinity());
  json("tolerance", proof.tolerance)("against", proof.against);
}

void describe(auto& json, Is<LedgerPoint::Metric> auto& metric) {
  json("name", metric.name)("lower_is_better", metric.lower_is_better);
  json.finite_or("value", metric.value, std::numeric_limits<double>::quiet_NaN());
  json("failure", metric.failure);
  json.some("output", metric.output);
  json.some("picture", metric.picture);
}

void describe(auto& json, Is<LedgerPoint::Latency> auto& latency) {
  json("before", latency.before)("after", latency.after)("batch", latency.batch);
}

void describe(auto& json, Is<LedgerPoint::Model> auto& model) {
  json("name", model.name)("sha256", model.sha256);
}

void describe(auto& json, Is<LedgerPoint::Data> auto& data) {
  json("name", data.name)("fingerprint", data.fingerprint)("train", data.train)("test", data.test);
}

void describe(auto& json, Is<LedgerPoint::Machine> auto& machine) {
  json("processor", machine.processor)("cores", machine.cores)("threads", machine.threads);
}

void describe(auto& json, Is<LedgerPoint::Ranks> auto& ranks) {
  json("step_bytes", ranks.step_bytes)("samples_per_second", ranks.samples_per_second);
  json.require(!ranks.samples_per_second.empty(), "there are no ranks");
}

void describe(auto& json, Is<LedgerPoint> auto& point) {
  json.name("key", point.key);
  json.inner("point", [&](auto& inner) {
    inner("criterion", point.criterion);
    inner.share("sparsity", point.sparsity);
    inner("seed", point.seed);
  });
  json("model", point.model)("data", point.data);
  json.json("config", point.config);
  json("params", point.params)("macs", point.macs)("bytes", point.bytes);
  json("latency_ms", point.latency_ms);
  json.inner("seconds", [&](auto& inner) {
    inner("warm_up", point.warm_up)("prune", point.prune_seconds);
    inner("train", point.train)("evaluate", point.evaluate_seconds);
  });
  json.maybe("ranks", point.ranks);
  json.inner("accuracy", [&](auto& inner) {
    inner("before", point.before)("pruned", point.pruned)("after", point.after);
  });
  json("epochs", point.epochs)("layers", point.layers);
  json.renamed("unpruned_dims", "kept_whole", point.unpruned_dims);
  json("proof", point.proof);
  json.some("metrics", point.metrics);
  json("machine", point.machine);
  json("version", point.version)("command", point.command);
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
  void renamed(const char* key, const char* before, auto& value) {
    (*this)(at_.find(key) ? key : before, value);
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
    Reading json(at_.at(key));
    members(json);
  }
  void json(const char* key, std::string& text) {
    if (!at_.at(key).is_object()) at_.at(key).expected("an object");
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
    Reading json(at);
    describe(json, to);
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
  JsonWriter json;
  json("parsimony_ledger", kVersion);
  describe(json, point);
  return json.taken().dump(-1, ' ', false, Json::error_handler_t::replace);
}

LedgerPoint read_ledger_point(std::string_view line, std::string_view place) {
  const JsonDocument document(line, place, throw_as<ModelError>, true);
  const int64_t version = document.root().at("parsimony_ledger").count();
  if (version < 1 || version > kVersion) {
    throw UnsupportedError(place, ": a ledger line of version ", version,
                           ", but this Parsimony reads versions 1 to ", kVersion);
  }
  LedgerPoint point;
  Reading json(document.root());
  describe(json, point);
  return point;
}

namespace {

namespace fs = std::filesystem;

constexpr const char* kFileName = "ledger.jsonl";

/// Points with the places where they were found.
class Collector {
 public:
  void add(LedgerPoint point, const std::string& place) {
    const auto [known, is_new] = places_.try_emplace(point.key, Known{points_.size(), place});
    if (is_new) {
      points_.push_back(std::move(point));
      return;
    }
    if (!points_[known->second.index].agrees_with(point)) {
      throw ModelError(known->second.place, " and ", place,
                       " contradict each other about a point (key ", point.key,
                       "); remove the wrong line");
    }
  }
  std::vector<LedgerPoint> take() { return std::move(points_); }

 private:
  struct Known {
    size_t index;
    std::string place;
  };
  std::vector<LedgerPoint> points_;
  std::map<std::string, Known> places_;
};

/// Returns the begin of the last line if it has no newline; the end otherwise.
size_t tail_begin(std::string_view bytes) {
  const size_t newline = bytes.rfind('\n');
  return newline == std::string_view::npos ? 0 : newline + 1;
}

/// Returns whether a line is complete: a truncated object does not parse, so an editor has removed
/// the newline.
bool is_whole(std::string_view line) { return is_json(line); }

/// Returns whether an incomplete line was skipped.
bool collect(std::string_view bytes, const std::string& path, Collector& collector) {
  size_t number = 0;
  for (size_t begin = 0; begin < bytes.size();) {
    ++number;
    const size_t end = bytes.find('\n', begin);
    const std::string_view line = bytes.substr(begin, end - begin);
    if (end == std::string_view::npos && !is_whole(line)) return true;
    const std::string place = path + ":" + std::to_string(number);
    if (!line.empty()) collector.add(read_ledger_point(line, place), place);
    if (end == std::string_view::npos) break;
    begin = end + 1;
  }
  return false;
}

void collect_file(const std::string& path, Collector& collector, LedgerContent& content) {
  if (collect(read_file(path), path, collector)) {
    content.notes.push_back(path + ": the last line is incomplete and was skipped");
  }
}

/// An open file under an exclusive lock; both end with the object, or with the process.
class LockedFile {
 public:
  explicit LockedFile(const std::string& path)
      : path_(path),
        is_new_(!fs::exists(path)),
        descriptor_(open(path.c_str(), O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC, 0666)) {
    if (descriptor_ < 0) throw errors::cannot_write(path, errno);
    while (flock(descriptor_, LOCK_EX) != 0) {
      if (errno == EINTR) continue;
      const int cause = errno;
      close(descriptor_);
      throw errors::cannot_write(path, cause);
    }
    if (is_new_) sync_folder();
  }
  ~LockedFile() { close(descriptor_); }
  LockedFile(const LockedFile&) = delete;
  LockedFile& operator=(const LockedFile&) = delete;

  void cut(size_t size) const {
    if (ftruncate(descriptor_, static_cast<off_t>(size)) != 0) fail(errno);
  }

  /// Appends all or nothing: on failure the file is truncated to `size`, its previous size.
  void append(std::string_view bytes, size_t size) const {
    if (put(bytes)) return;
    const int cause = errno;
    cut(size);
    fail(cause);
  }

 private:
  /// Returns false with errno set.
  bool put(std::string_view bytes) const {
    while (!bytes.empty()) {
      const ssize_t written = write(descriptor_, bytes.data(), bytes.size());
      if (written < 0 && errno == EINTR) continue;
      if (written < 0) return false;
      bytes.remove_prefix(written);
    }
    return fsync(descriptor_) == 0;
  }

  [[noreturn]] void fail(int cause) const { throw errors::cannot_write(path_, cause); }

  /// Syncs the folder, so that the new name survives a crash as well.
  void sync_folder() const {
    const std::string folder = fs::path(path_).parent_path().string();
    const int opened = open(folder.empty() ? "." : folder.c_str(), O_RDONLY | O_CLOEXEC);
    if (opened < 0) return;
    fsync(opened);
    close(opened);
  }

  const std::string& path_;
  bool is_new_;
  int descriptor_;
};

}  // namespace

Ledger::Ledger(const std::string& folder) : path_((fs::path(folder) / kFileName).string()) {}

bool Ledger::append(const LedgerPoint& point) {
  std::string line = to_json_line(point) + "\n";
  const LockedFile file(path_);
  const std::string bytes = read_file(path_);
  Collector known;
  collect(bytes, path_, known);
  for (const LedgerPoint& other : known.take()) {
    if (other.key == point.key) return false;
  }
  size_t size = bytes.size();
  const size_t tail = tail_begin(bytes);
  const std::string_view last(bytes.data() + tail, size - tail);
  if (!last.empty() && is_whole(last)) {
    line.insert(0, "\n");
  } else if (!last.empty()) {
    file.cut(tail);
    size = tail;
  }
  file.append(line, size);
  return true;
}

LedgerContent Ledger::content() const {
  return fs::exists(path_) ? read_ledger(path_) : LedgerContent{};
}

std::set<std::string> Ledger::keys() const {
  std::set<std::string> keys;
  for (const LedgerPoint& point : points()) keys.insert(point.key);
  return keys;
}

LedgerContent read_ledger(const std::string& path) {
  LedgerContent content;
  Collector collector;
  collect_file(path, collector, content);
  content.points = collector.take();
  return content;
}

LedgerContent merge_ledgers(std::span<const std::string> folders) {
  LedgerContent content;
  Collector collector;
  for (const std::string& folder : folders) {
    const bool is_folder = fs::is_directory(folder);
    const std::string path = is_folder ? (fs::path(folder) / kFileName).string() : folder;
    if (is_folder && !fs::exists(path)) {
      throw IoError(folder, ": has no ledger.jsonl; pass the folder of `parsimony sweep --out`");
    }
    collect_file(path, collector, content);
  }
  content.points = collector.take();
  return content;
}

}  // namespace parsimony
