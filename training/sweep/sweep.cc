#include "parsimony/training/sweep/sweep.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <set>
#include <system_error>
#include <utility>

#include "parsimony/base/errors.h"
#include "parsimony/base/words.h"

namespace parsimony::training {
namespace {

namespace fs = std::filesystem;

std::string label(const SweepPoint& point) {
  char text[96];
  std::snprintf(text, sizeof text, "%s at %g %%, seed %llu",
                point.sparsity == 0 ? "dense" : point.criterion.c_str(), 100 * point.sparsity,
                static_cast<unsigned long long>(point.seed));
  return text;
}

void make_folder(const fs::path& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) throw parsimony::errors::cannot_write(folder.string(), error.value());
}

/// Removes entries with this prefix, if any.
void remove_all(const fs::path& folder, const std::string& beginning) {
  std::error_code error;
  std::vector<fs::path> found;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    if (it->path().filename().string().starts_with(beginning)) found.push_back(it->path());
  }
  for (const fs::path& path : found) fs::remove_all(path, error);
}

/// Estimates the remaining time from the points finished so far, by all processes.
class Estimate {
 public:
  explicit Estimate(size_t left) : begin_(Clock::now()), left_(left) {}

  /// Returns "; about 3 min left", or nothing if unknown.
  std::string text(size_t left) const {
    if (left >= left_) return "";
    const double passed = std::chrono::duration<double>(Clock::now() - begin_).count();
    const double seconds = passed / static_cast<double>(left_ - left) * static_cast<double>(left);
    constexpr double kMinute = 60;
    if (seconds < 2 * kMinute) return formatted("; about %.0f s left", seconds);
    if (seconds < 120 * kMinute) return formatted("; about %.0f min left", seconds / kMinute);
    return formatted("; about %.1f h left", seconds / (60 * kMinute));
  }

 private:
  using Clock = std::chrono::steady_clock;
  Clock::time_point begin_;
  size_t left_;
};

class Sweep {
 public:
  Sweep(const std::function<std::unique_ptr<TrainableModel>()>& make, const Dataset& data,
        const Recipe& recipe, const SweepOptions& options)
      : make_(make), data_(data), recipe_(recipe), options_(options), ledger_(options.folder) {
    for (const char* name : {"claims", "checkpoints", "models"}) {
      make_folder(fs::path(options.folder) / name);
    }
  }

  int run() {
    const std::vector<SweepPoint> points = points_of(recipe_);
    std::vector<Task> tasks;
    for (size_t i = 0; i < points.size(); ++i) {
      if (static_cast<int>(i) % options_.shard.count != options_.shard.index) continue;
      Recipe recipe = at_point(recipe_, points[i]);
      const std::string key = key_of(settings_json(recipe));
      tasks.push_back({points[i], std::move(recipe), key,
                       "[" + std::to_string(i + 1) + "/" + std::to_string(points.size()) + "]"});
    }
    const Estimate estimate(left_of(tasks, ledger_.keys()));
    int missing = 0;
    for (const Task& task : tasks) {
      if (!leads()) {
        if (ranks()->share("") == kTrain) train(task);
        continue;
      }
      const std::set<std::string> finished = ledger_.keys();
      if (finished.contains(task.key)) {
        tidy(task.key);
        tell("");
      } else if (!settle(task, estimate.text(left_of(tasks, finished)))) {
        ++missing;
        tell("");
      }
    }
    return missing;
  }

 private:
  static constexpr const char* kTrain = "train";

  const RankGroup* ranks() const { return options_.run.ranks; }
  bool leads() const { return ranks() == nullptr || ranks()->is_first(); }
  /// Tells the other ranks what to do with a point.
  void tell(const char* what) const {
    if (ranks() != nullptr) ranks()->share(std::string(what));
  }

  /// A point to be trained.
  struct Task {
    SweepPoint point;
    Recipe recipe;
    std::string key;
    std::string number;  ///< "[3/10]"
  };

  static size_t left_of(const std::vector<Task>& tasks, const std::set<std::string>& finished) {
    return std::count_if(tasks.begin(), tasks.end(),
                         [&](const Task& task) { return !finished.contains(task.key); });
  }

  std::string path(const char* folder, const std::string& name) const {
    return (fs::path(options_.folder) / folder / name).string();
  }

  /// Returns false if another process is working on it.
  bool settle(const Task& task, const std::string& remark) {
    const Claim claim(path("claims", task.key));
    if (!claim.held()) return false;
    if (ledger_.keys().contains(task.key)) {  // finished between the two checks
      tell("");
      return true;
    }
    say(task.number + ' ' + label(task.point) + remark);
    tell(kTrain);
    train(task);
    return true;
  }

  void train(const Task& task) {
    TrainingRunOptions run_options = options_.run;
    run_options.say = [&](const std::string& line) { say(task.number + "   " + line); };
    const std::string own = path("checkpoints", task.key);
    run_options.scratch = own + ".model";
    TrainingRun run(make_, data_, task.recipe, run_options);
    if (!run.load(own, task.key)) warm(run, task.recipe);
    while (!run.done()) {
      run.step();
      if (!run.done() && leads()) run.save(own, task.key);
    }
    if (!leads()) return;
    const std::string model = save_model(run, task.key);
    LedgerPoint record = run.point();
    if (options_.measure) record.metrics = options_.measure(model);
    record.key = task.key;
    record.criterion = task.point.criterion;
    record.sparsity = task.point.sparsity;
    static_cast<LedgerOrigin&>(record) = options_.origin;
    ledger_.append(record);
    tidy(task.key);
  }

  /// @returns its path
  std::string save_model(TrainingRun& run, const std::string& key) const {
    const bool is_file = !options_.origin.model.sha256.empty();
    const std::string name = name_of(key);
    const std::string extension =
        is_file ? fs::path(options_.origin.model.name).extension().string() : ".pt";
    std::string model = path("models", name + extension);
    run.net().save(model, run.example());
    if (!run.plans().empty()) run.plans().back().save(path("models", name + ".plan.json"));
    for (const char* file : {".plan.json", extension.c_str()}) {
      remove_all(fs::path(options_.folder) / "models", name + file + ".tmp");
    }
    return model;
  }

  std::string key_of(const std::string& settings) const {
    return run_key(options_.origin.model, data_, settings);
  }

  static std::string name_of(const std::string& key) { return key.substr(0, 12); }

  /// Removes files that a finished point no longer needs, also those of killed processes.
  void tidy(const std::string& key) const {
    remove_all(fs::path(options_.folder) / "checkpoints", key);
    remove_all(fs::path(options_.folder) / "claims", key);
  }

  /// The warm-up is the same for all points of a seed: the first one runs it, the others wait.
  void warm(TrainingRun& run, const Recipe& recipe) {
    // Accumulated from the beginning.
    const bool moves = asks_for(recipe.prune->config, "movement");
    Recipe same = recipe;
    same.prune = PruneSettings{.warmup_epochs = recipe.prune->warmup_epochs,
                               .schedule = recipe.prune->schedule,
                               .rewind_epoch = recipe.prune->rewind_epoch,
                               .penalty = recipe.prune->penalty,
                               .text = moves ? R"({"criterion": "movement"})" : "{}"};
    same.train.epochs = 0;
    same.train.schedule = RateSchedule::kConstant;
    const std::string key = key_of("warm-up\n" + settings_json(same));
    const std::string name = "warm-" + key;
    std::optional<Claim> claim;
    if (leads()) {
      claim.emplace(path("claims", name), Claim::IfTaken::kWait);
      remove_all(fs::path(options_.folder) / "checkpoints", name + ".tmp");
    }
    if (ranks() != nullptr) ranks()->wait();
    run.load(path("checkpoints", name), key);
    while (!run.is_warm()) {
      run.step();
      if (leads()) run.save(path("checkpoints", name), key);
    }
  }

  void say(const std::string& line) const {
    if (options_.run.say) options_.run.say(line);
  }

  const std::function<std::unique_ptr<TrainableModel>()>& make_;
  const Dataset& data_;
  const Recipe& recipe_;
  const SweepOptions& options_;
  Ledger ledger_;
};

}  // namespace

std::vector<SweepPoint> points_of(const Recipe& recipe) {
  const SweepSettings& sweep = recipe.sweep.value();
  std::vector<uint64_t> seeds = sweep.seed;
  if (seeds.empty()) seeds = {recipe.train.seed};
  std::vector<std::string> criteria = sweep.criterion;
  if (criteria.empty()) {
    const std::vector<ConfigEntry>& entries = recipe.prune->config.entries;
    const auto first = std::ranges::find(entries, false, &ConfigEntry::exclude);
    if (first != entries.end()) criteria = {first->request.criterion};
  }
  std::vector<SweepPoint> points;
  const auto add = [&](const SweepPoint& point) {
    if (std::find(points.begin(), points.end(), point) == points.end()) points.push_back(point);
  };
  for (const uint64_t seed : seeds) {
    add({"none", 0, seed});
    for (const std::string& criterion : criteria) {
      for (const double sparsity : sweep.sparsity) {
        if (sparsity > 0) add({criterion, sparsity, seed});
      }
    }
  }
  return points;
}

Recipe at_point(const Recipe& recipe, const SweepPoint& point) {
  Recipe result = recipe;
  result.train.seed = point.seed;
  PruneSettings& prune = result.prune.value();
  prune.config =
      at_sparsity(prune.config, point.sparsity, point.sparsity > 0 ? point.criterion : "");
  char text[96];
  std::snprintf(text, sizeof text, R"({"criterion": "%s", "sparsity": %.17g})",
                point.criterion.c_str(), point.sparsity);
  prune.text = "{\"at\": " + std::string(text) + ", \"config\": " + prune.text + "}";
  return result;
}

int sweep(const std::function<std::unique_ptr<TrainableModel>()>& make, const Dataset& data,
          const Recipe& recipe, const SweepOptions& options) {
  return Sweep(make, data, recipe, options).run();
}

namespace {

/// Whether this is still the file of that name: its owner may have removed it before we got the
/// lock.
bool is_file(int descriptor, const std::string& path) {
  struct stat own {};
  struct stat named {};
  return fstat(descriptor, &own) == 0 && stat(path.c_str(), &named) == 0 &&
         own.st_ino == named.st_ino && own.st_dev == named.st_dev;
}

/// Returns false if another process has the lock and should not be waited for.
bool lock_file(int descriptor, const std::string& path, Claim::IfTaken if_taken) {
  const bool wait = if_taken == Claim::IfTaken::kWait;
  while (flock(descriptor, wait ? LOCK_EX : LOCK_EX | LOCK_NB) != 0) {
    if (errno == EWOULDBLOCK) return false;
    if (errno != EINTR) throw parsimony::errors::cannot_write(path, errno);
  }
  return true;
}

}  // namespace

Claim::Claim(std::string path, IfTaken if_taken) : path_(std::move(path)) {
  while (true) {
    const int descriptor = open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (descriptor < 0) throw parsimony::errors::cannot_write(path_, errno);
    const bool locked = lock_file(descriptor, path_, if_taken);
    if (locked && is_file(descriptor, path_)) {
      descriptor_ = descriptor;
      return;
    }
    close(descriptor);
    if (!locked) return;
  }
}

Claim::~Claim() {
  if (!held()) return;
  unlink(path_.c_str());
  close(descriptor_);
}

}  // namespace parsimony::training
