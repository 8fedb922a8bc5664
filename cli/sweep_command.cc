#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <optional>
#include <thread>

#include "parsimony/base/errors.h"
#include "parsimony/cli/command.h"
#include "parsimony/cli/errors.h"
#include "parsimony/cli/options.h"
#include "parsimony/cli/report_files.h"
#include "parsimony/cli/shard.h"
#include "parsimony/cli/torch_commands.h"
#include "parsimony/cli/training_options.h"
#include "parsimony/cli/workers.h"

namespace parsimony::cli {
namespace {

/// What --demo runs: two minutes, no file.
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
};

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
    throw errors::usage("sweep", "--config FILE with a \"sweep\" is missing");
  }
  if (request.folder.empty()) throw errors::usage("sweep", "--out DIR is missing");
  if (std::filesystem::exists(request.folder) && !std::filesystem::is_directory(request.folder)) {
    throw parsimony::errors::cannot_write(request.folder, ENOTDIR);
  }
  request.shard = parse_shard(options.shard);
  if (options.jobs > 1 && !request.threads) {
    const int cores = static_cast<int>(std::thread::hardware_concurrency());
    request.threads = std::max(1, cores / options.jobs);
  }
}

/// Trains, with workers beside this process. @returns the number of points that other processes are
/// working on
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
  const bool worker = is_worker();
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
    std::string text = "This part is done. When all are: parsimony report " + request.folder + "\n";
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
  command.add_flag("--demo", options.demo, "Two minutes on drawn shapes; needs no file");
  add_option(command, "--jobs", options.jobs, "N", "Points in parallel")
      ->check(CLI::Range(1, 1024));
  add_option(command, "--shard", options.shard, "I/N",
             "Only the i-th of n parts (default: as Slurm or mpirun say)");
  add_options(command, options.request, options.recipe);
}

}  // namespace

void add_sweep(CLI::App& app, Session& session) {
  add_command<SweepCommandOptions>(
      app, session, "sweep",
      "Prunes and trains at many sparsities; writes a report. Resumes if interrupted",
      "parsimony sweep --config configs/cifar10_cnn_sweep.json --data cifar10:DIR --out runs/c",
      add_options, run_sweep);
}

}  // namespace parsimony::cli
