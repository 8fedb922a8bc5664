#include "parsimony/api/latency/profiler.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <ctime>
#include <exception>
#include <filesystem>
#include <thread>

#include "parsimony/api/engines.h"
#include "parsimony/api/errors.h"
#include "parsimony/api/torch_component.h"
#include "parsimony/base/errors.h"
#include "parsimony/base/files.h"
#include "parsimony/base/hash.h"
#include "parsimony/base/shell.h"
#include "parsimony/engines/machine/processor.h"
#include "parsimony/engines/random_inputs.h"
#include "parsimony/engines/timing.h"
#include "parsimony/onnx_io/graph_file.h"

namespace parsimony {
namespace {

constexpr double kPauseFactor = 8;
constexpr double kOutlier = 0.25;  ///< deviation from the median

/// Returns the times without outliers.
std::vector<double> usual(const std::vector<double>& times) {
  const double median = machine::summary_of(times).median;
  std::vector<double> kept = times;
  std::erase_if(kept, [&](double time) { return std::abs(time / median - 1) > kOutlier; });
  return kept;
}

double mean_of(const std::vector<double>& times) {
  double sum = 0;
  for (const double time : times) sum += time;
  return sum / static_cast<double>(times.size());
}

}  // namespace

double seconds_by(const LatencyCommand& command, const std::string& model) {
  const std::string line = with_path(command.line, "{model}", model);
  double pause = command.pause;
  for (int attempt = 0;; ++attempt) {
    const ShellOutcome ran = run_shell(line, command.timeout);
    const std::optional<double> number = last_number(ran.output);
    if (ran.failure.empty() && number.value_or(0) > 0) return *number * 1e-3;
    if (attempt == command.retries) {
      throw errors::command_failed(
          "--latency-command", line,
          ran.failure.empty() ? "its output contains no number above 0" : ran.failure, ran.output);
    }
    std::this_thread::sleep_for(std::chrono::duration<double>(pause));
    pause *= kPauseFactor;
  }
}

std::vector<std::optional<double>> CommandMeter::subgraphs(std::span<const Graph* const> graphs) {
  if (layers_ != nullptr) return layers_->subgraphs(graphs);
  std::vector<std::optional<double>> seconds;
  for (const Graph* graph : graphs) {
    try {
      const std::string path = (folder_.path() / "layer.onnx").string();
      write_file(path, onnx_io::to_onnx(*graph));
      seconds.emplace_back(seconds_by(command_, path));
    } catch (const UnsupportedError&) {
      seconds.emplace_back();
    }
  }
  return seconds;
}

const CommandMeter::Times& CommandMeter::measured(const std::string& model, int runs) {
  const std::string path = (folder_.path() / "model.onnx").string();
  write_file(path, model);
  Times& times = times_[sha256(model)];
  for (int run = 0; run < runs; ++run) times.push_back(seconds_by(command_, path));
  return times;
}

double CommandMeter::scatter() const {
  double squares = 0;
  size_t freedom = 0;
  for (const auto& [network, all] : times_) {
    const Times times = usual(all);
    if (times.size() < 2) continue;
    const double mean = mean_of(times);
    for (const double time : times) squares += (time / mean - 1) * (time / mean - 1);
    freedom += times.size() - 1;
  }
  return freedom == 0 ? kOutlier : std::sqrt(squares / static_cast<double>(freedom));
}

std::optional<LatencyMeter::Pair> CommandMeter::networks(const Graph& dense, const Graph& small) {
  constexpr int kDenseRuns = 3;  // in place of one
  const std::string original = onnx_io::to_onnx(dense);
  const auto known = times_.find(sha256(original));
  Pair pair;
  pair.dense = mean_of(usual(
      known != times_.end() ? known->second : measured(original, kDenseRuns * command_.runs)));
  const std::string cut = onnx_io::to_onnx(small);
  if (cut == original) return pair;
  const Times times = usual(measured(cut, command_.runs));
  pair.share = mean_of(times) / pair.dense;
  pair.noise = scatter() / std::sqrt(static_cast<double>(times.size()));
  return pair;
}

namespace {

constexpr double kSubgraphSeconds = 3e-3;
constexpr int kFewestRuns = 6;
constexpr int kMostRuns = 30;

}  // namespace

double thread_seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

std::unique_ptr<Network> EngineMeter::make_ready(const Graph& graph,
                                                 const std::vector<InputSpec>& specs,
                                                 bool with_batch) const {
  std::unique_ptr<Network> network = engine_.open(graph);
  for (const int64_t below : runtime::kIntegerRanges) {
    runtime::RandomInputOptions feed;
    feed.specs = specs;
    feed.below = below;
    if (with_batch && options_.batch != 1) feed.batch = options_.batch;
    try {
      network->bind(runtime::random_inputs(graph, feed));
      network->compute();
      break;
    } catch (const std::exception&) {
      if (below == runtime::kIntegerRanges.back()) throw;
    }
  }
  return network;
}

std::vector<std::optional<double>> EngineMeter::subgraphs(std::span<const Graph* const> graphs) {
  std::vector<std::optional<double>> seconds(graphs.size());
  std::vector<std::unique_ptr<Network>> ready(graphs.size());
  std::vector<size_t> places;
  std::vector<machine::Work> works;
  double longest = 0;
  for (size_t g = 0; g < graphs.size(); ++g) {
    try {
      ready[g] = make_ready(*graphs[g], {}, false);
    } catch (const std::exception&) {
      continue;
    }
    Network* network = ready[g].get();
    places.push_back(g);
    works.emplace_back([network] { network->compute(); });
    network->compute();
    const double begin = clock_();
    network->compute();
    longest = std::max(longest, clock_() - begin);
  }
  machine::InterleavedOptions rounds;
  const double fitting = kSubgraphSeconds / std::max(longest, kSubgraphSeconds / kMostRuns);
  rounds.runs = std::clamp(static_cast<int>(fitting), kFewestRuns, kMostRuns);
  const auto samples = machine::run_interleaved(works, rounds, clock_);
  for (size_t i = 0; i < places.size(); ++i) {
    seconds[places[i]] = machine::summary_of(samples[i].runs).low;
  }
  return seconds;
}

std::optional<LatencyMeter::Pair> EngineMeter::networks(const Graph& dense, const Graph& small) {
  const std::unique_ptr<Network> first = make_ready(dense, options_.specs, true);
  const std::unique_ptr<Network> second = make_ready(small, options_.specs, true);
  machine::InterleavedOptions rounds;
  rounds.seconds = options_.seconds;
  const std::vector<machine::Work> works = {[&] { first->compute(); }, [&] { second->compute(); }};
  for (const machine::Work& work : works) machine::warm_up(work, rounds, clock_);
  const auto samples = machine::run_interleaved(works, rounds, clock_);
  Pair pair;
  pair.dense = machine::summary_of(samples[0].runs).median;
  pair.share = machine::compare(samples[1].rounds, samples[0].rounds).median;
  return pair;
}

namespace {

namespace fs = std::filesystem;

std::string cached_path(const LatencyFile& file) {
  const std::string what = file.machine + "\n" + file.engine + "\n" + std::to_string(file.threads);
  constexpr size_t kDigits = 12;
  return cache_folder() / "latency" / (sha256(what).substr(0, kDigits) + ".json");
}

/// Uses tables of another machine, without measuring.
class TableMeter final : public LatencyMeter {
 public:
  TableMeter(std::string path, std::string machine)
      : path_(std::move(path)), machine_(std::move(machine)) {}

  std::vector<std::optional<double>> subgraphs(std::span<const Graph* const> graphs) override {
    throw UnsupportedError(path_, " has layer times for ", machine_, ", but none of ",
                           described(*graphs.front()),
                           "; measure it there, or pass --latency-command");
  }
  std::optional<Pair> networks(const Graph&, const Graph&) override { return std::nullopt; }

 private:
  static std::string described(const Graph& layer) {
    std::string text;
    for (const Node& node : layer.nodes) text += (text.empty() ? "" : ", ") + node.op;
    return text;
  }

  std::string path_;
  std::string machine_;
};

}  // namespace

LatencyProfiler::LatencyProfiler(const PruneRequest& request) {
  const LatencySettings& expected = request.latency;
  named_ = !expected.table.empty();
  command_ = expected.command.line;
  std::optional<LatencyFile> found;
  if (named_ && fs::exists(expected.table)) {
    found = parse_latency_file(read_file(expected.table), expected.table);
  }
  path_ = expected.table;
  file_.machine = machine::this_processor().model;
  if (named_ && !command_.empty()) {
    file_.machine = command_;
    file_.engine = "command";
  } else if (found && found->machine != file_.machine) {
    other_machine_ = found->machine;
    file_ = std::move(*found);
    found.reset();
    meter_ = std::make_unique<TableMeter>(path_, other_machine_);
  } else {
    use_engine(request);
  }
  if (found) {
    check_origin(*found, file_, path_);
    file_.tables = std::move(found->tables);
  }
  if (!command_.empty()) {
    meter_ = std::make_unique<CommandMeter>(expected.command, layers_.get());
  }
  known_ = file_.tables.size();
}

LatencyProfiler::~LatencyProfiler() {
  try {
    save();
  } catch (const IoError&) {
    // Another failure has been reported, or save() has.
  }
}

void LatencyProfiler::use_engine(const PruneRequest& request) {
  file_.threads = name_of(request.engine) == "libtorch"
                      ? torch_component().choose_threads(request.threads)
                      : request.threads.value_or(1);
  engine_ = timed_engine_of(request.engine, file_.threads);
  file_.engine = engine_->name() + " " + engine_->version();
  layers_ =
      std::make_unique<EngineMeter>(*engine_, MeterOptions{request.inputs, request.latency.batch},
                                    file_.threads == 1 ? machine::Clock(thread_seconds)
                                                       : machine::Clock(machine::steady_seconds));
  if (named_) return;
  path_ = cached_path(file_);
  if (!fs::exists(path_)) return;
  try {
    LatencyFile cached = parse_latency_file(read_file(path_), path_);
    check_origin(cached, file_, path_);
    file_.tables = std::move(cached.tables);
  } catch (const ConfigError&) {
    // The layers will be measured again.
  }
}

void LatencyProfiler::save() {
  if (file_.tables.size() == known_) return;
  for (auto& [key, table] : file_.tables) {
    if (table.measured == 0) table.measured = static_cast<int64_t>(std::time(nullptr));
  }
  known_ = file_.tables.size();
  if (named_) {
    write_file(path_, to_json(file_));
    return;
  }
  std::error_code error;
  fs::create_directories(fs::path(path_).parent_path(), error);
  try {
    write_file(path_, to_json(file_));
  } catch (const IoError&) {
    // They will be measured again.
  }
}

}  // namespace parsimony
