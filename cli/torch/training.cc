#include <ATen/Context.h>
#include <ATen/Parallel.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <system_error>
#include <utility>
#include <vector>

#include "parsimony/base/errors.h"
#include "parsimony/base/files.h"
#include "parsimony/base/hash.h"
#include "parsimony/cli/torch/jobs.h"
#include "parsimony/configs/recipe.h"
#include "parsimony/data/dataset.h"
#include "parsimony/engines/machine/report.h"
#include "parsimony/report/event_file.h"
#include "parsimony/torch_io/machine.h"
#include "parsimony/training/errors.h"
#include "parsimony/training/loader/endless.h"
#include "parsimony/training/loop/device.h"
#include "parsimony/training/net/trainable_model.h"
#include "parsimony/training/ranks/group.h"
#include "parsimony/training/run/run.h"
#include "parsimony/training/sweep/sweep.h"

namespace parsimony::component {
namespace {

using namespace training;

ConfigError unknown_model(const std::string& name) {
  const std::vector<std::string> known = built_in_names();
  return ConfigError("model \"", name, "\" is neither a file nor a built-in network.",
                     did_you_mean(name, known), " Built-in networks: ", listed(known, known.size()),
                     ".");
}

/// Preparation of a job before anything is trained.
class Preparation {
 public:
  explicit Preparation(const cli::TrainingRequest& request)
      : recipe(request.recipe), request_(request) {
    at::globalContext().setDeterministicAlgorithms(request.deterministic, false);
    at::globalContext().setBenchmarkCuDNN(!request.deterministic);
    device = parse_device(request.device);
    if (request.ranks.several()) meet(request.ranks);
    // Cheap checks come before reading the data.
    if (recipe.train.precision == Precision::kFloat16 && !device.is_cuda()) {
      throw training::errors::half_needs_cuda();
    }
    if (!is_built_in(recipe.model) && !std::filesystem::exists(recipe.model)) {
      throw unknown_model(recipe.model);
    }
    DatasetOptions options;
    options.train_samples = request.train_samples;
    options.test_samples = request.test_samples;
    options.size = request.image_size;
    options.normalise = recipe.train.normalise;
    options.mean = recipe.train.mean;
    options.deviation = recipe.train.deviation;
    options.ignore = ignored_label();
    data = read_dataset(recipe.data, options);
    if (leads() && request.say && !data.note.empty()) request.say("note: " + data.note);
    make = maker();
    if (ranks) ranks->agree("the data", data.fingerprint);
  }

  /// @throws ConfigError, IoError, UnsupportedError
  void meet(const RankPlace& place) {
    training::check_ranks(device);
    ranks.emplace(place);
    ranks->agree("the version of parsimony", PARSIMONY_VERSION);
    ranks->agree("the settings", settings_json(recipe));
    ranks->agree("the network", is_built_in(recipe.model) ? recipe.model : read_file(recipe.model));
  }

  bool leads() const { return !ranks || ranks->is_first(); }

  /// @throws ConfigError for losses that labelled data does not support
  std::optional<int64_t> ignored_label() const {
    if (recipe.train.loss.empty()) return {};
    const std::vector<LossTerm> terms = parse_losses(recipe.train.loss);
    const LossTerm& term = terms.front();
    if (term.kind != LossKind::kCrossEntropy || !term.output.empty() || term.weight != 1) {
      throw ConfigError("loss \"", recipe.train.loss,
                        "\": labelled data supports cross_entropy only, optionally with "
                        ":ignore=LABEL; other losses need arrays: parsimony finetune "
                        "--calibration npz:FILE --loss");
    }
    return term.ignore;
  }

  /// Returns a factory for a built-in network or one from a file.
  MakeNet maker() const {
    if (MakeNet known = built_in(recipe.model, data)) {
      if (recipe.train.batch_norm) throw training::errors::norms_need_onnx(recipe.model);
      return known;
    }
    return file_net(recipe.model, {.batch_norm = recipe.train.batch_norm});
  }

  training::TrainingRunOptions run_options() const {
    return {.device = device,
            .channels_last = has_channels_last(recipe.train.memory_format, data.train.dims,
                                               recipe.train.precision, device),
            .verify = request_.verify,
            .ranks = ranks ? &*ranks : nullptr,
            .say = leads() ? request_.say : nullptr};
  }

  LedgerOrigin origin() const {
    const bool file = !is_built_in(recipe.model);
    const parsimony::machine::MachineReport facts = parsimony::machine::facts();
    return {{recipe.model, file ? sha256(read_file(recipe.model)) : ""},
            {facts.processor.model, facts.cores.usable(), at::get_num_threads()},
            settings_json(recipe),
            PARSIMONY_VERSION,
            request_.command};
  }

  Recipe recipe;
  c10::Device device{c10::kCPU};
  Dataset data;
  MakeNet make;
  std::optional<RankGroup> ranks;

 private:
  const cli::TrainingRequest& request_;
};

/// Training in one format and precision, ready for timing.
class Candidate {
 public:
  Candidate(const Preparation& prepared, bool channels_last, Precision precision)
      : context_{prepared.data, prepared.device, channels_last}, watch_(nullptr) {
    TrainSettings settings = prepared.recipe.train;
    settings.precision = precision;
    net_ = prepared.make();
    place(*net_, prepared.device, channels_last);
    net_->train(true);
    trainer_.emplace(labelled_training(*net_, context_, settings));
    loader_.emplace(prepared.data.train, loader_options(context_, settings));
    cached_ = loader_->next();
    step_cached();  // fails here if it cannot be run
  }

  void step_cached() {
    const StepStream stream(context_.device);
    finish(trainer_->step(cached_, watch_));
  }
  void step_pipeline() {
    const StepStream stream(context_.device);
    finish(trainer_->step(loader_->next(), watch_));
  }

 private:
  /// Waits for the device.
  void finish(const std::vector<at::Tensor>& losses) {
    if (context_.device.is_cuda()) static_cast<void>(losses.front().item<double>());
  }

  TrainContext context_;
  PhaseWatch watch_;
  std::unique_ptr<TrainableModel> net_;
  std::optional<Trainer> trainer_;
  std::optional<EndlessLoader> loader_;
  Batch cached_;
};

}  // namespace

std::vector<cli::TrainBenchRow> bench_training(const cli::TrainBenchRequest& request) {
  const Preparation prepared(request);
  std::vector<cli::TrainBenchRow> rows;
  std::vector<std::unique_ptr<Candidate>> candidates;
  std::vector<machine::Work> works;
  std::vector<std::pair<Precision, const char*>> precisions = {{Precision::kFloat32, "fp32"},
                                                               {Precision::kBFloat16, "bf16"}};
  if (prepared.device.is_cuda()) precisions.emplace_back(Precision::kFloat16, "fp16");
  for (const auto& [precision, name] : precisions) {
    for (const bool last : {false, true}) {
      cli::TrainBenchRow& row = rows.emplace_back();
      row.memory_format = last ? "channels_last" : "contiguous";
      row.precision = name;
      try {
        Candidate& own =
            *candidates.emplace_back(std::make_unique<Candidate>(prepared, last, precision));
        works.emplace_back([&own] { own.step_cached(); });
        works.emplace_back([&own] { own.step_pipeline(); });
      } catch (const c10::Error& error) {
        row.refused = error.what_without_backtrace();
      } catch (const UnsupportedError& error) {
        row.refused = error.what();
      }
    }
  }
  for (const machine::Work& work : works) machine::warm_up(work, request.rounds);
  const std::vector<machine::RunTimes> samples = machine::run_interleaved(works, request.rounds);
  size_t next = 0;
  for (cli::TrainBenchRow& row : rows) {
    if (!row.refused.empty()) continue;
    row.cached = machine::summary_of(samples[next++].runs);
    row.pipeline = machine::summary_of(samples[next++].runs);
  }
  return rows;
}

/// Names the point like a sweep does, by the recipe's entries.
void name_point(LedgerPoint& point, const Recipe& recipe) {
  point.criterion = "none";
  if (!recipe.prune) return;
  for (const ConfigEntry& entry : recipe.prune->config.entries) {
    if (entry.request.ratio <= point.sparsity) continue;
    point.sparsity = entry.request.ratio;
    point.criterion = entry.request.criterion;
  }
}

LedgerPoint train(const cli::TrainRequest& request) {
  torch_io::use_cores(request.threads);
  Preparation prepared(request);
  std::optional<EventFile> events;
  if (!request.tensorboard.empty() && prepared.leads()) events.emplace(request.tensorboard);
  const bool checkpoints = !request.checkpoint.empty();
  training::TrainingRunOptions options = prepared.run_options();
  std::unique_ptr<TrainableModel> teacher;
  if (!request.teacher.empty()) {
    teacher = file_net(request.teacher)();
    teacher->train(false);
    place(*teacher, options.device, options.channels_last);
    options.teacher = teacher.get();
  }
  if (prepared.ranks) prepared.ranks->wait();
  Trace trace(request.ranks.rank);
  if (!request.profile.empty()) options.trace = &trace;
  if (events) options.events = &*events;
  const LedgerOrigin origin = prepared.origin();
  const std::string key = run_key(origin.model, prepared.data, origin.config, request.teacher);
  training::TrainingRun run(prepared.make, prepared.data, prepared.recipe, options);
  if (checkpoints && run.load(request.checkpoint, key) && options.say) {
    options.say("resumes from " + request.checkpoint);
  }
  while (!run.done()) {
    run.step();
    if (checkpoints && prepared.leads()) run.save(request.checkpoint, key);
  }
  if (!request.profile.empty()) {
    const auto& ranks = prepared.ranks;
    const std::vector<std::string> texts =
        ranks ? ranks->gather(trace.text()) : std::vector<std::string>{trace.text()};
    if (prepared.leads()) write_trace(request.profile, texts);
  }
  if (!prepared.leads()) return run.point();
  if (!request.out.empty()) run.net().save(request.out, run.example());
  if (!request.plan.empty() && !run.plans().empty()) run.plans().back().save(request.plan);
  LedgerPoint point = run.point();
  point.key = key;
  name_point(point, prepared.recipe);
  static_cast<LedgerOrigin&>(point) = origin;
  return point;
}

int sweep(const cli::SweepRequest& request) {
  torch_io::use_cores(request.threads);
  Preparation prepared(request);
  const std::filesystem::path checkpoints = std::filesystem::path(request.folder) / "checkpoints";
  std::error_code error;
  std::filesystem::create_directories(checkpoints, error);
  if (error) throw parsimony::errors::cannot_write(checkpoints.string(), error.value());
  const LedgerOrigin origin = prepared.origin();
  if (request.prepared) request.prepared();
  return training::sweep(
      prepared.make, prepared.data, prepared.recipe,
      {prepared.run_options(), request.folder, request.shard, origin, request.measure});
}

}  // namespace parsimony::component
