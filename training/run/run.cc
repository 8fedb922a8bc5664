#include "parsimony/training/run/run.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <exception>
#include <utility>

#include "parsimony/base/errors.h"
#include "parsimony/base/files.h"
#include "parsimony/base/hash.h"
#include "parsimony/base/words.h"
#include "parsimony/engines/timing.h"
#include "parsimony/report/text.h"
#include "parsimony/training/loop/device.h"
#include "parsimony/training/recovery/recover.h"
#include "parsimony/training/statistics/measure.h"

namespace parsimony::training {
namespace {

using enum Step::Kind;

constexpr int64_t kCalibration = 256;  // samples for criteria that need data

at::Tensor zeros(const Dataset& data, int64_t batch, c10::Device device) {
  Shape dims = data.train.dims;
  dims.insert(dims.begin(), batch);
  const auto type = data.tokens ? at::kLong : at::kFloat;
  return at::zeros(dims, at::TensorOptions(type).device(device));
}

std::unique_ptr<TrainableModel> made(const std::function<std::unique_ptr<TrainableModel>()>& make,
                                     uint64_t seed, const TrainContext& on) {
  at::manual_seed(seed);
  std::unique_ptr<TrainableModel> net = make();
  place(*net, on.device, on.channels_last);
  return net;
}

void add_epochs(int epochs, bool last, std::vector<Step>& steps) {
  for (int epoch = 0; epoch < epochs; ++epoch) {
    steps.push_back({.kind = kEpoch, .epoch = epoch, .epochs = epochs, .last = last});
  }
}

void add_cuts(const PruneSettings& prune, std::vector<Step>& steps) {
  const bool searches = prune.schedule == PruningSchedule::kAnnealing;
  for (int i = 0; searches && i < prune.search_steps; ++i) {
    steps.push_back({.kind = kSearch, .epoch = i, .epochs = prune.search_steps});
  }
  const size_t count = cuts(prune).size();
  for (size_t i = 0; i < count; ++i) {
    const bool last = i + 1 == count;
    steps.push_back({.kind = kCut, .last = last, .cut = i});
    if (!last) add_epochs(prune.epochs_between, false, steps);
  }
  steps.push_back({.kind = kScorePruned});
}

/// Warm-up, the search for ratios, cuts with epochs in between, and training, with the evaluations
/// that a ledger needs.
std::vector<Step> steps_of(const Recipe& recipe) {
  std::vector<Step> steps;
  if (recipe.prune) add_epochs(recipe.prune->warmup_epochs, false, steps);
  steps.push_back({.kind = kScoreBefore});
  if (recipe.prune) add_cuts(*recipe.prune, steps);
  add_epochs(recipe.train.epochs, true, steps);
  steps.push_back({.kind = kScoreAfter});
  return steps;
}

// Progress messages.

std::string number(double value) { return formatted("%.4f", value); }

std::string seconds(double value) { return formatted("%.2f s", value); }

/// "85.31 % (8531 of 10000)"
std::string percent(const LedgerPoint::Score& score) {
  const std::string text = str_cat(formatted("%.2f", 100 * score.share()), " % (", score.correct,
                                   " of ", score.total, ")");
  return score.perplexity ? text + ", perplexity " + number(*score.perplexity) : text;
}

/// Formats the phases of an epoch's time.
std::string taken_apart(const Phases& p) {
  std::string text;
  for (const TrainingPhase& phase : phases_in(p)) {
    text += (text.empty() ? "" : ", ") + std::string(phase.name) + " " + seconds(p.*phase.seconds);
  }
  return text;
}

double rate_of(torch::optim::Optimizer& optimizer) {
  return optimizer.param_groups().front().options().get_lr();
}

}  // namespace

std::string run_key(const LedgerOrigin::Model& model, const Dataset& data,
                    const std::string& settings, const std::string& teacher) {
  std::string known =
      str_cat("1\n", model.name, '\n', model.sha256, '\n', data.fingerprint, '\n', settings);
  if (!teacher.empty()) known += '\n' + sha256(read_file(teacher));
  return sha256(known);
}

TrainingRun::TrainingRun(const std::function<std::unique_ptr<TrainableModel>()>& make,
                         const Dataset& data, const Recipe& recipe, TrainingRunOptions options)
    : data_(data),
      recipe_(recipe),
      options_(std::move(options)),
      context_{
          data,           options_.device, options_.channels_last, options_.teacher, options_.ranks,
          options_.trace, options_.say},
      net_(made(make, recipe_.train.seed, context_)),
      steps_(steps_of(recipe_)),
      between_cuts_(recipe_, *net_) {
  if (recipe_.prune) cuts_ = cuts(*recipe_.prune);
  record_.point.seed = recipe_.train.seed;
  record_.point.data = {data.name, data.fingerprint, data.train.count(), data.test.count()};
  for (const auto& [name, tensor] : net_->parameters()) {
    record_.dense_shapes[name] = tensor.sizes().vec();
  }
}

bool TrainingRun::is_warm() const {
  return std::none_of(steps_.begin() + static_cast<std::ptrdiff_t>(next_), steps_.end(),
                      [](const Step& step) { return step.kind == kScoreBefore; });
}

void TrainingRun::step() {
  const Step step = steps_[next_];
  LedgerPoint& point = record_.point;
  switch (step.kind) {
    case kEpoch:
      epoch(step);
      break;
    case kCut:
      cut(step);
      break;
    case kSearch:
      search(step);
      break;
    case kScoreBefore:
      point.before = score();
      say("before pruning: " + percent(point.before));
      break;
    case kScorePruned:
      point.pruned = score("_pruned");
      say("pruned, not trained further: " + percent(point.pruned));
      break;
    case kScoreAfter:
      agree_on_weights();
      if (point.after.total == 0) point.after = score();
      say("at the end: " + percent(point.after));
      break;
  }
  ++next_;
}

void TrainingRun::begin_stage(const Step& step) {
  TrainSettings settings = recipe_.train;
  settings.epochs = step.epochs;
  if (!step.last) settings.schedule = RateSchedule::kConstant;
  context_.after_backward = between_cuts_.begin_stage(example(), !step.last);
  trainer_ = std::make_unique<Trainer>(labelled_training(*net_, context_, settings));
  trainer_->skip(step.epoch);
}

void TrainingRun::epoch(const Step& step) {
  if (step.epoch == 0) begin_stage(step);
  between_cuts_.begin_epoch();
  const EpochTimes times = trainer_->epoch(shuffle_++);
  const bool warm_up = record_.in_warm_up();
  const double took = times.seconds.total();
  (warm_up ? record_.point.warm_up : record_.point.train) += times.seconds;
  if (options_.ranks != nullptr) record_.add(times, *options_.ranks, step.epoch == 0);
  record(shuffle_, {{"train/loss", times.loss},
                    {"train/learning_rate", rate_of(trainer_->optimizer())},
                    {"train/seconds_per_epoch", took},
                    {"train/samples_per_second", static_cast<double>(data_.train.count()) / took}});
  if (warm_up) between_cuts_.end_warm_up_epoch(step.epoch + 1);
  const int every = recipe_.train.evaluate_every;
  const bool final = step.last && step.ends_stage();
  const bool scored = !warm_up && (final || (every > 0 && (step.epoch + 1) % every == 0));
  const LedgerPoint::Epoch result{took, times.loss, scored ? score() : LedgerPoint::Score()};
  if (final) record_.point.after = result.score;

  std::string line = (warm_up ? "warm-up " : "epoch ") + std::to_string(step.epoch + 1) + " of " +
                     std::to_string(step.epochs) + ": loss " + number(times.loss);
  if (result.score.total > 0) line += ", " + percent(result.score);
  say(line + ", " + seconds(took) + " (" + taken_apart(times.seconds) + ")");
  if (!warm_up) record_.point.epochs.push_back(result);
  if (!final && step.last && result.score.total > 0) stop_early(step, result.score);
}

/// Skips the rest of the stage if there is no improvement.
void TrainingRun::stop_early(const Step& step, const LedgerPoint::Score& score) {
  const TrainSettings& train = recipe_.train;
  if (!early_stop_.after(score.share(), train.evaluate_every, train.early_stop)) return;
  say("no improvement for " + std::to_string(early_stop_.worse) + " epochs: stopped");
  record_.point.after = score;
  next_ += step.epochs - step.epoch - 1;
}

PruneRequest TrainingRun::cut_request(const ConfigList& config) const {
  PruneRequest request = config;
  request.seed = recipe_.train.seed;
  request.verify =
      options_.verify && (options_.ranks == nullptr || options_.ranks->place().verifies());
  return request;
}

PruneServices TrainingRun::cut_services(const ConfigList& config) const {
  const int64_t samples = config.calibration ? config.calibration->samples : kCalibration;
  PruneServices services;
  services.measure = between_cuts_.with_movement(
      measurement(on_device(batches_of(data_, samples), options_.device), {}, options_.ranks));
  RecoverySettings recovers;
  for (const std::string& step : config.recover) {
    recovers.steps.push_back(parse_recovery(step, "recover"));
  }
  if (!recovers.steps.empty()) {
    services.recover =
        recovery(data_, recovers, samples, options_.ranks, options_.device, options_.say);
  }
  return services;
}

void TrainingRun::begin_search() {
  const ConfigList& config = recipe_.prune->config;
  search_.emplace(*net_, example(), *recipe_.prune, cut_request(config), cut_services(config));
}

void TrainingRun::search(const Step& step) {
  if (!search_) begin_search();
  if (search_->done()) return;  // no choice
  const double loss = search_->step(*net_, [this](TrainableModel& trial) {
    place(trial, options_.device, options_.channels_last);
    const double own = loss_on(trial, context_, recipe_.train, recipe_.prune->search_samples);
    return options_.ranks == nullptr ? own : options_.ranks->share(own);
  });
  record(step.epoch + 1, {{"search/loss", loss}});
  say("candidate " + std::to_string(step.epoch + 1) + " of " + std::to_string(step.epochs) +
      ": loss " + number(loss) + ", best " + number(search_->state().best_energy));
  if (search_->done()) cuts_.front() = search_->best();
}

void TrainingRun::cut(const Step& step) {
  LedgerPoint& point = record_.point;
  const bool first = record_.plans.empty();
  const bool measures = options_.latency && leads();
  if (first && measures) point.latency_ms = LedgerPoint::Latency{latency(), 0, recipe_.train.batch};
  if (first && leads()) point.bytes.before = bytes_of(*net_, example(), options_.scratch);
  if (first && recipe_.train.distill > 0 && options_.teacher == nullptr) {
    std::unique_ptr<TrainableModel> dense = net_->clone_architecture();
    copy_values(*net_, *dense);
    teach_by(std::move(dense));
  }
  trainer_.reset();  // a fresh optimizer, and replicas of other parameters
  double took = 0;
  PruneResult done = pruned(cuts_[step.cut], took);
  place(*net_, options_.device, options_.channels_last);
  search_.reset();
  between_cuts_.follow(done.plan);
  const std::vector<std::string> notes = done.notes;
  record_.add(std::move(done), took, *net_);
  if (first) record_size(0, point.params.before, point.macs.before);
  record_size(shuffle_, point.params.after, point.macs.after);
  say("cut: " + with_thousands(point.params.before) + " -> " + with_thousands(point.params.after) +
      " parameters, " + with_thousands(point.macs.before) + " -> " +
      with_thousands(point.macs.after) + " multiply-adds, " + seconds(took));
  for (const std::string& note : notes) say("note: " + note);
  if (!step.last || !leads()) return;
  point.bytes.after = bytes_of(*net_, example(), options_.scratch);
  if (point.latency_ms) point.latency_ms->after = latency();
}

/// All ranks plan, from the same sums; rank 0 decides on values.
PruneResult TrainingRun::pruned(const ConfigList& config, double& seconds) {
  const auto prune = [&] {
    const double begin = machine::steady_seconds();
    PruneResult done = net_->prune(example(), cut_request(config), cut_services(config));
    seconds = machine::steady_seconds() - begin;
    return done;
  };
  if (options_.ranks == nullptr) return prune();
  const RankGroup& ranks = *options_.ranks;
  PruneResult done;
  std::exception_ptr failure;
  std::string why;  // at this rank
  try {
    done = prune();
  } catch (const std::exception& error) {
    failure = std::current_exception();
    why = error.what();
  }
  const std::vector<std::string> reasons = ranks.gather(why);
  if (failure) std::rethrow_exception(failure);
  for (size_t rank = 0; rank < reasons.size(); ++rank) {
    if (!reasons[rank].empty()) throw ModelError("rank ", rank, ": ", reasons[rank]);
  }
  ranks.agree("the plan", done.plan.to_json());
  std::vector<at::Tensor> tensors;
  for (const auto& [name, tensor] : all_tensors(*net_)) tensors.push_back(tensor);
  ranks.share(tensors);
  agree_on_weights();
  return done;
}

void TrainingRun::agree_on_weights() const {
  if (options_.ranks == nullptr) return;
  std::string bytes;
  for (const auto& [name, tensor] : all_tensors(*net_)) {
    const at::Tensor values = tensor.detach().cpu().contiguous();
    bytes.append(static_cast<const char*>(values.data_ptr()), values.nbytes());
  }
  options_.ranks->agree("the weights", bytes);
}

void TrainingRun::teach_by(std::unique_ptr<TrainableModel> dense) {
  dense_ = std::move(dense);
  dense_->train(false);
  place(*dense_, options_.device, options_.channels_last);
  context_.teacher = dense_.get();
}

LedgerPoint::Score TrainingRun::score(const std::string& of) {
  const double begin = machine::steady_seconds();
  const LedgerPoint::Score result = training::score(*net_, context_, recipe_.train);
  record_.point.evaluate_seconds += machine::steady_seconds() - begin;
  std::vector<Scalar> scalars = {{"test/accuracy" + of, result.share()}};
  if (result.perplexity) scalars.push_back({"test/perplexity" + of, *result.perplexity});
  record(shuffle_, scalars);
  return result;
}

at::Tensor TrainingRun::example() const { return zeros(data_, 1, options_.device); }

double TrainingRun::latency() {
  at::Tensor x = zeros(data_, recipe_.train.batch, options_.device);
  if (context_.channels_last && x.dim() == 4) x = x.contiguous(at::MemoryFormat::ChannelsLast);
  return latency_of(*net_, x);
}

void TrainingRun::say(const std::string& line) const {
  if (options_.say) options_.say(line);
}

void TrainingRun::record(int64_t at, const std::vector<Scalar>& scalars) const {
  if (options_.events != nullptr) options_.events->add(at, scalars);
}

void TrainingRun::record_size(int64_t at, int64_t params, int64_t macs) const {
  record(at, {{"model/parameters", static_cast<double>(params)},
              {"model/macs", static_cast<double>(macs)}});
}

}  // namespace parsimony::training
