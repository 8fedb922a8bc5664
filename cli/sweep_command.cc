#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <memory>
#include <optional>
#include <thread>

#include "parsimony/base/errors.h"
#include "parsimony/cli/command.h"
#include "parsimony/cli/errors.h"
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
  TrainingOptions training;
  SweepOrder order;
  std::string shard;
  int jobs = 1;
  bool demo = false;
};

/// Fills the order with what was asked for. @throws ConfigError, IoError
void complete(SweepCommandOptions& options, const Session& session) {
  SweepOrder& order = options.order;
  if (options.demo) {
    if (order.folder.empty()) order.folder = "parsimony-demo";
    fill(order, options.training, session, parse_recipe(kDemo, "--demo"));
  } else {
    fill(order, options.training, session);
  }
  if (!order.recipe.sweep) {
    throw errors::usage("sweep", "--config FILE with a \"sweep\" is missing");
  }
  if (order.folder.empty()) throw errors::usage("sweep", "--out DIR is missing");
  if (std::filesystem::exists(order.folder) && !std::filesystem::is_directory(order.folder)) {
    throw parsimony::errors::cannot_write(order.folder, ENOTDIR);
  }
  const ShardOption shard = parse_shard(options.shard);
  order.shard = shard.index;
  order.shards = shard.count;
  if (options.jobs > 1 && !order.threads) {
    const int cores = static_cast<int>(std::thread::hardware_concurrency());
    order.threads = std::max(1, cores / options.jobs);
  }
}

/// Trains, with workers beside this process. @returns points that others are at work on
int train(SweepCommandOptions& options, const Session& session) {
  std::optional<Workers> others;
  if (options.jobs > 1) {
    // Not before the order has proven sound: or each would complain.
    options.order.prepared = [&] { others.emplace(options.jobs - 1, session.words); };
  }
  const int missing = torch_commands().sweep(options.order);
  if (!others || missing == 0) return missing;
  others->wait();
  options.order.prepared = nullptr;
  return torch_commands().sweep(options.order);  // what a dead worker left
}

void run(SweepCommandOptions& options, const Session& session) {
  const bool worker = is_worker();
  complete(options, session);
  if (worker) {
    torch_commands().sweep(options.order);
    return;
  }
  const SweepOrder& order = options.order;
  if (order.shards > 1 && order.say) {
    order.say("part " + std::to_string(order.shard + 1) + " of " + std::to_string(order.shards));
  }
  const int missing = train(options, session);
  if (missing > 0 || order.shards > 1) {
    std::string text = "This part is done. When all are: parsimony report " + order.folder + "\n";
    if (missing > 0) {
      text = "Another process is still at work on " + std::to_string(missing) +
             (missing == 1 ? " point" : " points") + ".\n" + text;
    }
    if (!session.quiet) print(text);
    return;
  }
  const std::string text = write_report({order.folder}, order.folder, "");
  if (!session.quiet) print(text);
}

}  // namespace

void add_sweep(CLI::App& app, Session& session) {
  auto options = std::make_shared<SweepCommandOptions>();
  CLI::App* command = add_command(
      app, "sweep", "Prunes and trains at many sparsities; writes a report. Goes on if interrupted",
      "parsimony sweep --config configs/cifar10_cnn_sweep.json --data cifar10:DIR --out runs/c");
  add_model_option(*command, options->training);
  command->add_option("--out", options->order.folder, "Folder of the ledger and the report")
      ->type_name("DIR");
  command->add_flag("--demo", options->demo, "Two minutes on drawn shapes; needs no file");
  command->add_option("--jobs", options->jobs, "Points side by side")
      ->type_name("N")
      ->check(CLI::Range(1, 1024));
  command
      ->add_option("--shard", options->shard,
                   "Only the i-th of n parts (default: as Slurm or mpirun say)")
      ->type_name("I/N");
  add_options(*command, options->training);
  command->callback(
      [options, &session] { session.run = [options, &session] { run(*options, session); }; });
}

}  // namespace parsimony::cli
