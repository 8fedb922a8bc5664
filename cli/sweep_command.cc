#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>

#include "parsimony/base/errors.h"
#include "parsimony/base/files.h"
#include "parsimony/base/parse.h"
#include "parsimony/cli/command.h"
#include "parsimony/cli/metric.h"
#include "parsimony/cli/options.h"
#include "parsimony/cli/processes.h"
#include "parsimony/cli/torch_commands.h"
#include "parsimony/cli/training_options.h"
#include "parsimony/configs/recipe.h"

namespace parsimony::cli {
namespace {

/// Environment variables with a launcher's index and number of processes.
struct Launcher {
  const char* index;
  const char* count;
  const char* first;  ///< the index that it begins with; null: 0
};

constexpr std::array<Launcher, 4> kLaunchers = {
    {{"SLURM_ARRAY_TASK_ID", "SLURM_ARRAY_TASK_COUNT", "SLURM_ARRAY_TASK_MIN"},
     {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", nullptr},
     {"PMI_RANK", "PMI_SIZE", nullptr},
     // Not SLURM_NTASKS: a batch script has that too, and is itself but one process.
     {"SLURM_PROCID", "SLURM_STEP_NUM_TASKS", nullptr}}};

/// Parses the part of a sweep for this process: "2/8" is the second of eight. If empty, it is taken
/// from the environment: a Slurm array or job, or mpirun's variables. @throws ConfigError
Shard parse_shard(const std::string& text) {
  if (!text.empty()) {
    const size_t slash = text.find('/');
    const auto index = number_of<int>(std::string_view(text).substr(0, slash));
    const auto count = slash == std::string::npos
                           ? std::nullopt
                           : number_of<int>(std::string_view(text).substr(slash + 1));
    if (!index || !count || *index < 1 || *index > *count) {
      throw ConfigError("--shard ", in_quotes(text), ": expected I/N with 1 <= I <= N");
    }
    return {*index - 1, *count};
  }
  for (const Launcher& launcher : kLaunchers) {
    const auto index = number_of<int>(environment(launcher.index));
    const auto count = number_of<int>(environment(launcher.count));
    if (!index || !count) continue;
    const int first =
        launcher.first == nullptr ? 0 : number_of<int>(environment(launcher.first)).value_or(0);
    if (*index >= first && *index - first < *count) return {*index - first, *count};
  }
  return {};
}

/// The recipe of --demo, which takes two minutes and needs no file.
constexpr const char* kDemo = R"({
  "model": "cnn", "data": "shapes",
  "train": {"epochs": 3, "lr": 1e-3, "evaluate_every": 0},
  "prune": {"warmup_epochs": 1, "config_list": [{"op_types": ["Conv2d"], "sparse_ratio": 0.5}]},
  "sweep": {"sparsity": [0.2, 0.4, 0.5, 0.6, 0.8]}
})";

struct SweepCommandOptions {
  RecipeOptions recipe;
  SweepRequest request;
  std::string shard;
  int jobs = 1;
  bool demo = false;
  MetricOptions metric;
  RankOptions ranks;
};

/// Parses the metrics, which must be commands: built-in metrics compare with one dense network, and
/// a sweep has one per seed.
std::vector<MetricRow> metrics_of(const MetricOptions& options) {
  std::vector<MetricRow> metrics;
  for (const std::string& text : options.commands) {
    metrics.push_back(parse_metric(text));
    if (parse_built_in(text))
      throw errors::usage("sweep", "--metric requires a command with {model}");
  }
  return metrics;
}

/// Returns the last lines, which a report shows.
std::string end_of(std::string_view output) {
  constexpr size_t kShown = 2000;
  if (output.size() <= kShown) return std::string(output);
  const std::string_view last = output.substr(output.size() - kShown);
  return std::string(last.substr(std::min(last.find('\n') + 1, last.size())));
}

/// Measures all metrics; a failing command only loses its own value.
std::vector<LedgerPoint::Metric> measured(Meter& meter, const std::vector<MetricRow>& metrics,
                                          const std::string& model) {
  std::vector<LedgerPoint::Metric> values;
  for (const MetricRow& metric : metrics) {
    LedgerPoint::Metric& value = values.emplace_back();
    value.name = metric.command;
    value.lower_is_better = metric.lower_is_better;
    try {
      Measured found = meter.measure(metric, model);
      value.value = found.value;
      value.output = end_of(found.output);
      value.picture = std::move(found.picture);
    } catch (const ModelError& error) {
      value.value = std::numeric_limits<double>::quiet_NaN();
      value.failure = error.what();
    }
  }
  return values;
}

/// Completes the job from the options. @throws ConfigError, IoError
void complete(SweepCommandOptions& options, const Session& session) {
  SweepRequest& request = options.request;
  if (options.demo) {
    if (request.folder.empty()) request.folder = "parsimony-demo";
    complete(request, options.recipe, session, parse_recipe(kDemo, "--demo"));
  } else {
    complete(request, options.recipe, session);
  }
  if (!request.recipe.sweep) {
    throw errors::usage("sweep", "--config FILE with a \"sweep\" is required");
  }
  if (request.folder.empty()) throw errors::usage("sweep", "--out DIR is required");
  if (std::filesystem::exists(request.folder) && !std::filesystem::is_directory(request.folder)) {
    throw parsimony::errors::cannot_write(request.folder, ENOTDIR);
  }
  // A launcher's processes are ranks or parts, not both.
  const bool part = !options.shard.empty() || !request.ranks.several();
  request.shard = part ? parse_shard(options.shard) : Shard();
  if (const std::vector<MetricRow> metrics = metrics_of(options.metric); !metrics.empty()) {
    const auto meter = std::make_shared<Meter>(options.metric, "", MetricData());
    request.measure = [meter, metrics](const std::string& model) {
      return measured(*meter, metrics, model);
    };
  }
  if (options.jobs > 1 && !request.threads) {
    const int cores = static_cast<int>(std::thread::hardware_concurrency());
    request.threads = std::max(1, cores / options.jobs);
  }
}

/// Trains with additional workers. @returns the number of points that other processes are working
/// on
int train(SweepCommandOptions& options, const Session& session) {
  std::optional<Workers> others;
  if (options.jobs > 1) {
    // Only once the job is valid; otherwise each worker would report the error.
    options.request.prepared = [&] { others.emplace(options.jobs - 1, session.words); };
  }
  const int missing = torch_commands().sweep(options.request);
  if (!others || missing == 0) return missing;
  others->wait();
  options.request.prepared = nullptr;
  return torch_commands().sweep(options.request);  // what a zero worker left
}

void run_sweep(SweepCommandOptions& options, const Session& session) {
  if (wants_ranks(options.ranks)) {
    if (options.jobs > 1) {
      throw errors::usage("sweep",
                          "--jobs cannot be combined with --processes: run either points in "
                          "parallel, or processes within each");
    }
    options.request.ranks = ranks_of(options.ranks, session);
    options.request.threads = threads_of(options.request.threads, options.request.ranks);
  }
  const RankPlace& place = options.request.ranks;
  const bool worker = place.several() ? place.rank > 0 : is_worker();
  complete(options, session);
  if (worker) {
    torch_commands().sweep(options.request);
    return;
  }
  const SweepRequest& request = options.request;
  if (request.shard.count > 1 && request.say) {
    request.say("part " + std::to_string(request.shard.index + 1) + " of " +
                std::to_string(request.shard.count));
  }
  const int missing = train(options, session);
  if (missing > 0 || request.shard.count > 1) {
    std::string text = "This part is done. When all parts are done, run: parsimony report " +
                       request.folder + "\n";
    if (missing > 0) {
      text = "Another process is still working on " + std::to_string(missing) +
             (missing == 1 ? " point" : " points") + ".\n" + text;
    }
    if (!session.quiet) print(text);
    return;
  }
  const std::string text = write_report({request.folder}, request.folder, "");
  if (!session.quiet) print(text);
}

void add_options(CLI::App& command, SweepCommandOptions& options) {
  add_model_option(command, "--model", options.recipe)->type_name("NAME");
  add_option(command, "--out", options.request.folder, "DIR",
             "Folder of the ledger and the report");
  command.add_flag("--demo", options.demo,
                   "Run a demo of two minutes on generated shapes; needs no files");
  add_option(command, "--jobs", options.jobs, "N", "Number of points to train in parallel")
      ->check(within({.lowest = 1, .highest = 1024}));
  add_option(command, "--shard", options.shard, "I/N",
             "Train only the i-th of n parts (default: as set by Slurm or mpirun)");
  add_rank_training_options(command, options.ranks);
  add_options(command, options.request, options.recipe);
  add_option(
      command, "--metric", options.metric.commands, "COMMAND",
      "Metric of every point's network: a shell command with {model}, as in prune. The report "
      "shows the number that it prints, and a PNG or JPEG that it writes to {picture}");
  add_metric_minutes(command, options.metric);
}

}  // namespace

void add_sweep(CLI::App& app, Session& session) {
  add_command<SweepCommandOptions>(
      app, session, "sweep",
      "Prunes and trains at several sparsities, and writes a report; resumes if interrupted",
      "parsimony sweep --config configs/cifar10_cnn_sweep.json --data cifar10:DIR --out runs/c",
      add_options, run_sweep);
}

}  // namespace parsimony::cli
