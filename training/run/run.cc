#include "parsimony/training/run/run.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "parsimony/report/text.h"
#include "parsimony/training/loop/device.h"
#include "parsimony/training/loop/errors.h"
#include "parsimony/training/run/measured.h"
#include "parsimony/training/run/sentences.h"
#include "parsimony/training/statistics/measure.h"

namespace parsimony::training {
namespace {

using Score = LedgerPoint::Score;

constexpr int64_t kCalibration = 256;  // samples that criteria are shown, where they need data

LedgerPoint::Evidence evidence(const Proof& proof) {
  LedgerPoint::Evidence result;
  result.ran = proof.ran();
  result.reason = proof.not_run;
  result.against = proof.mixes ? "the original with the removed channels absent from its statistics"
                               : "the original with the removed slices set to zero";
  if (const OutputDifference* worst = proof.worst()) {
    result.difference = worst->difference;
    result.tolerance = worst->tolerance;
  }
  return result;
}

bool has_scale(const std::vector<ParameterGroup>& groups) {
  return std::any_of(groups.begin(), groups.end(), [](const ParameterGroup& group) {
    return std::any_of(group.slices.begin(), group.slices.end(),
                       [](const ParameterSlices& slices) { return slices.scale; });
  });
}

}  // namespace

Run::Run(const std::function<std::unique_ptr<Net>()>& make, const Dataset& data,
         const Recipe& recipe, RunOptions options)
    : data_(data),
      recipe_(recipe),
      options_(std::move(options)),
      place_{data, options_.device, options_.channels_last, options_.teacher, options_.trace} {
  at::manual_seed(recipe_.train.seed);
  check_norms();
  net_ = make();
  place(*net_, options_.device, options_.channels_last);
  point_.seed = recipe_.train.seed;
  point_.data = {data.name, data.fingerprint, data.train.count(), data.test.count()};
  for (const auto& [name, tensor] : net_->parameters()) dense_shapes_[name] = tensor.sizes().vec();
  plan_steps();
  if (rewinds_to(0)) rewind_.emplace(*net_);
  if (recipe_.prune && asks_for(recipe_.prune->config, "movement")) movement_.emplace(*net_);
}

void Run::check_norms() const {
  if (!recipe_.train.batch_norm || !recipe_.prune) return;
  if (recipe_.prune->schedule == PruningSchedule::kLottery) {
    throw errors::norms_keep_no_record("\"schedule\": \"lottery\"");
  }
  if (asks_for(recipe_.prune->config, "movement")) {
    throw errors::norms_keep_no_record("\"criterion\": \"movement\"");
  }
}

bool Run::rewinds_to(int epoch) const {
  return recipe_.prune && recipe_.prune->schedule == PruningSchedule::kLottery &&
         recipe_.prune->rewind_epoch == epoch;
}

void Run::plan_steps() {
  const TrainSettings& train = recipe_.train;
  if (recipe_.prune) {
    const PruneSettings& prune = *recipe_.prune;
    add_epochs(prune.warmup_epochs, false);
    steps_.push_back({.kind = Kind::kScoreBefore});
    cuts_ = cuts(prune);
    const bool searches = prune.schedule == PruningSchedule::kAnnealing;
    for (int i = 0; searches && i < prune.search_steps; ++i) {
      steps_.push_back({.kind = Kind::kSearch, .epoch = i, .epochs = prune.search_steps});
    }
    for (size_t i = 0; i < cuts_.size(); ++i) {
      const bool last = i + 1 == cuts_.size();
      steps_.push_back({.kind = Kind::kCut, .last = last, .cut = i});
      if (!last) add_epochs(prune.epochs_between, false);
    }
    steps_.push_back({.kind = Kind::kScorePruned});
  } else {
    steps_.push_back({.kind = Kind::kScoreBefore});
  }
  add_epochs(train.epochs, true);
  steps_.push_back({.kind = Kind::kScoreAfter});
}

void Run::add_epochs(int epochs, bool last) {
  for (int epoch = 0; epoch < epochs; ++epoch) {
    steps_.push_back({.kind = Kind::kEpoch, .epoch = epoch, .epochs = epochs, .last = last});
  }
}

bool Run::is_warm() const {
  return std::none_of(steps_.begin() + static_cast<std::ptrdiff_t>(next_), steps_.end(),
                      [](const Step& step) { return step.kind == Kind::kScoreBefore; });
}

void Run::step() {
  const Step step = steps_[next_];
  switch (step.kind) {
    case Kind::kEpoch:
      epoch(step);
      break;
    case Kind::kCut:
      cut(step);
      break;
    case Kind::kSearch:
      search(step);
      break;
    case Kind::kScoreBefore:
      point_.before = judge();
      say("before pruning: " + percent(point_.before));
      break;
    case Kind::kScorePruned:
      point_.pruned = judge();
      say("pruned, not trained further: " + percent(point_.pruned));
      break;
    case Kind::kScoreAfter:
      if (point_.after.total == 0) point_.after = judge();
      say("at the end: " + percent(point_.after));
      break;
  }
  ++next_;
}

void Run::begin_stage(const Step& step) {
  TrainSettings settings = recipe_.train;
  settings.epochs = step.epochs;
  if (!step.last) settings.schedule = RateSchedule::kConstant;
  watch_gradients(!step.last);
  stage_ = std::make_unique<Stage>(*net_, place_, settings);
  stage_->skip(step.epoch);
}

/// What happens between gradients and optimizer until the last cut.
void Run::watch_gradients(bool before_cut) {
  penalty_.reset();
  place_.after_backward = {};
  if (!before_cut) return;
  if (recipe_.prune->penalty.any()) take_penalty();
  place_.after_backward = [this] {
    if (movement_) movement_->see(*net_);
    if (penalty_) penalty_->add_gradients();
  };
}

void Run::take_penalty() {
  std::vector<ParameterGroup> groups =
      net_->groups(example(), recipe_.prune->config.granularity.value_or(Granularity::kChannel));
  if (recipe_.prune->penalty.slimming > 0 && !has_scale(groups)) throw errors::no_scale();
  penalty_.emplace(recipe_.prune->penalty, std::move(groups));
}

void Run::epoch(const Step& step) {
  if (step.epoch == 0) begin_stage(step);
  if (penalty_) penalty_->begin_epoch();
  const EpochTimes times = stage_->run(shuffle_++);
  const bool warm_up = point_.before.total == 0;
  (warm_up ? point_.warm_up : point_.train) += times.seconds;
  if (warm_up && rewinds_to(step.epoch + 1)) rewind_.emplace(*net_);
  LedgerPoint::Epoch record{times.seconds.total(), times.loss, {}};
  const int every = recipe_.train.evaluate_every;
  const bool final = step.last && step.epoch + 1 == step.epochs;
  if (!warm_up && (final || (every > 0 && (step.epoch + 1) % every == 0))) record.score = judge();
  if (final) point_.after = record.score;

  std::string line = (warm_up ? "warm-up " : "epoch ") + std::to_string(step.epoch + 1) + " of " +
                     std::to_string(step.epochs) + ": loss " + number(times.loss);
  if (record.score.total > 0) line += ", " + percent(record.score);
  say(line + ", " + seconds(times.seconds.total()) + " (" + taken_apart(times.seconds) + ")");
  if (!warm_up) point_.epochs.push_back(record);
  if (final || !step.last || recipe_.train.early_stop == 0) return;

  if (record.score.total == 0) return;  // not judged
  const double share = record.score.share();
  worse_ = share > best_ ? 0 : worse_ + every;
  best_ = std::max(best_, share);
  if (worse_ < recipe_.train.early_stop) return;
  say("no better for " + std::to_string(worse_) + " epochs: stopped");
  point_.after = record.score;
  next_ += static_cast<size_t>(step.epochs - step.epoch - 1);
}

/// Of the training data, and of the training so far.
Measurement Run::measurement_of(const ConfigList& config) const {
  const int64_t samples = config.calibration ? config.calibration->samples : kCalibration;
  return [this, by_data = measurement(batches_of(data_, samples))](
             const Graph& graph, const Facts& facts, const Coupling& coupling, const Needs& needs) {
    Needs of_data = needs;
    const bool moves = of_data.channels.erase(Measure::kMovement) > 0;
    Statistics statistics =
        of_data.empty() ? Statistics() : by_data(graph, facts, coupling, of_data);
    if (moves && movement_) {
      Statistics of_training = movement_->statistics(graph, coupling);
      statistics.groups = std::move(of_training.groups);
      statistics.channels.merge(of_training.channels);
    }
    return statistics;
  };
}

std::vector<double> Run::search_state() const {
  return search_ ? to_numbers(search_->state()) : std::vector<double>();
}

void Run::take_up_search(const std::vector<double>& state) {
  if (state.empty()) return;
  begin_search();
  search_->take_up(to_annealing_state(state));
  if (search_->done()) cuts_.front() = search_->best();
}

PruneOptions Run::cut_options(const ConfigList& config) const {
  PruneOptions options{.seed = recipe_.train.seed, .verify = options_.verify};
  options.measure = measurement_of(config);
  return options;
}

void Run::begin_search() {
  search_.emplace(*net_, example(), *recipe_.prune, cut_options(recipe_.prune->config));
}

void Run::search(const Step& step) {
  if (!search_) begin_search();
  if (search_->done()) return;  // there is nothing to choose from
  const double loss = search_->step(*net_, [this](Net& trial) {
    place(trial, options_.device, options_.channels_last);
    return loss_on(trial, place_, recipe_.train, recipe_.prune->search_samples);
  });
  say("candidate " + std::to_string(step.epoch + 1) + " of " + std::to_string(step.epochs) +
      ": loss " + number(loss) + ", best " + number(search_->state().best_energy));
  if (search_->done()) cuts_.front() = search_->best();
}

void Run::cut(const Step& step) {
  if (plans_.empty() && options_.latency) {
    point_.latency_ms = LedgerPoint::Latency{latency(), 0, recipe_.train.batch};
  }
  if (plans_.empty()) point_.bytes.before = bytes_of_model();
  if (plans_.empty() && recipe_.train.distill > 0 && options_.teacher == nullptr) {
    std::unique_ptr<Net> dense = net_->afresh();
    copy_values(*net_, *dense);
    teach_by(std::move(dense));
  }
  Cut done = net_->prune(example(), cuts_[step.cut], cut_options(cuts_[step.cut]));
  place(*net_, options_.device, options_.channels_last);
  stage_.reset();  // a fresh optimizer
  search_.reset();
  if (movement_) movement_->follow(done.plan);
  if (rewind_) {
    rewind_->follow(done.plan);
    rewind_->restore(*net_);
  }
  if (plans_.empty()) {
    point_.params.before = done.before.params;
    point_.macs.before = done.before.macs;
  }
  point_.params.after = done.after.params;
  point_.macs.after = done.after.macs;
  point_.prune_seconds += done.seconds;
  point_.kept_whole = done.plan.kept_whole;
  if (!done.plan.empty()) point_.proof = evidence(done.proof);
  say("cut: " + with_thousands(point_.params.before) + " -> " +
      with_thousands(point_.params.after) + " parameters, " + with_thousands(point_.macs.before) +
      " -> " + with_thousands(point_.macs.after) + " multiply-adds, " + seconds(done.seconds));
  for (const std::string& note : done.notes) say("note: " + note);
  plans_.push_back(std::move(done.plan));
  point_.layers = layer_widths(*net_, plans_, dense_shapes_);
  if (!step.last) return;
  point_.bytes.after = bytes_of_model();
  if (point_.latency_ms) point_.latency_ms->after = latency();
}

void Run::teach_by(std::unique_ptr<Net> dense) {
  dense_ = std::move(dense);
  dense_->train(false);
  place(*dense_, options_.device, options_.channels_last);
  place_.teacher = dense_.get();
}

Score Run::judge() {
  const auto begin = std::chrono::steady_clock::now();
  const Score result = score(*net_, place_, recipe_.train);
  point_.evaluate_seconds +=
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return result;
}

at::Tensor Run::example() const {
  Shape dims = data_.train.dims;
  dims.insert(dims.begin(), 1);
  return at::zeros(dims, at::TensorOptions(at::kFloat).device(options_.device));
}

int64_t Run::bytes_of_model() { return bytes_of(*net_, example(), options_.scratch); }

double Run::latency() {
  Shape dims = data_.train.dims;
  dims.insert(dims.begin(), recipe_.train.batch);
  at::Tensor x = at::zeros(dims, at::TensorOptions(at::kFloat).device(options_.device));
  if (place_.channels_last && x.dim() == 4) x = x.contiguous(at::MemoryFormat::ChannelsLast);
  return latency_of(*net_, x);
}

void Run::say(const std::string& line) const {
  if (options_.say) options_.say(line);
}

}  // namespace parsimony::training
