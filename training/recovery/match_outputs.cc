#include "parsimony/training/recovery/match_outputs.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <utility>

#include "parsimony/base/errors.h"
#include "parsimony/base/ranges.h"
#include "parsimony/base/words.h"
#include "parsimony/engines/timing.h"
#include "parsimony/speedup/fit_layers.h"
#include "parsimony/torch_io/executor/graph_module.h"
#include "parsimony/torch_io/side_by_side.h"
#include "parsimony/torch_io/tensor.h"
#include "parsimony/training/loop/optimizer.h"
#include "parsimony/training/loop/output_loss.h"
#include "parsimony/training/loop/trainer.h"
#include "parsimony/training/recovery/ends.h"

namespace parsimony::training {
namespace {

// One batch in this many is used for validation.
constexpr int64_t kValidationPeriod = 8;
// Number of batches from which the spread of values is estimated.
constexpr int64_t kTeachers = 32;
// Maximum bytes of the dense network's outputs that are cached between epochs.
constexpr size_t kAnswerBytes = size_t{512} << 20;
// Number of parts of a step's batch, which run concurrently: the same everywhere, since their
// gradients are summed.
constexpr int kParts = 4;
constexpr const char* kByTime =
    "the time limit ended training; another run may give different weights";
// The share of epochs may lag behind the share of the time limit by this much.
constexpr double kAfter = 0.1;
// The share of the training during which the rate rises.
constexpr double kStart = 0.05;
// The whole network is trained for this many times the epochs of a block.
constexpr int kBlockShare = 4;
// The share of the time limit for all blocks together.
constexpr double kBlocksMinutes = 0.5;

/// Calibration data for a trainer: an eighth of the batches is held out for validation, at least
/// one if there are several.
class FitSamples {
 public:
  FitSamples(const MatchData& data, const Graph& graph)
      : data_(data), parts_(has_states(data.batches) ? 1 : kParts), batch_(batch_of(graph)) {
    const BatchSource feed = batches();
    for (; const std::optional<SampleBatch> one = feed(); ++count_) {
      if (count_ > 0) continue;
      device_ = one->inputs.front().device();
      states_ = one->states;
    }
  }

  int64_t count() const { return count_; }
  /// Returns the number of parts of a step, run concurrently.
  int parts() const { return parts_; }
  const RankGroup* ranks() const { return data_.ranks; }
  c10::Device device() const { return device_; }
  /// Returns the states if the samples are a stream; null: none.
  const std::vector<FedBack>* states() const { return states_.get(); }

  BatchSource batches() const { return data_.batches(batch_); }
  /// Returns the validation or the training batches, in steps. @param skip  called with those in
  /// between
  StepSource steps(bool validating, std::function<void(const SampleBatch& batch)> skip = {}) const {
    return [this, validating, skip = std::move(skip), feed = batches(), i = int64_t{0},
            ended = false]() mutable -> std::optional<StepBatch> {
      StepBatch step;
      while (!ended && std::ssize(step.parts) < parts_) {
        std::optional<SampleBatch> batch = feed();
        ended = !batch;
        if (ended) break;
        const int64_t number = i++;
        if (validating ? validates(number) : trains(number)) {
          step.parts.emplace_back(std::move(*batch), number);
        } else if (skip) {
          skip(*batch);
        }
      }
      if (step.parts.empty()) return {};
      return step;
    };
  }

 private:
  static bool has_states(const Batches& all) {
    const std::optional<SampleBatch> first = all(1)();
    return first && first->states;
  }

  /// Returns the samples of one part of a step.
  int64_t batch_of(const Graph& graph) const {
    if (fixed_batch(graph) > 0) return data_.batch;
    const int ranks = data_.ranks == nullptr ? 1 : data_.ranks->size();
    return std::max<int64_t>(1, data_.batch / (parts_ * ranks));
  }

  /// Whether batch `i` is for validation: one in each period or, of a stream, whose neighbours are
  /// alike, as many at its end. With few batches the last one; a single one is for both.
  bool validates(int64_t i) const {
    const int64_t period = std::min(kValidationPeriod, count_);
    return states_ ? i >= count_ - count_ / period : i % period == period - 1;
  }
  bool trains(int64_t i) const { return count_ == 1 || !validates(i); }

  const MatchData& data_;
  const int parts_;
  const int64_t batch_;
  int64_t count_ = 0;
  c10::Device device_{c10::kCPU};
  std::shared_ptr<const std::vector<FedBack>> states_;
};

/// The dense network's outputs, cached.
class DenseOutputs {
 public:
  DenseOutputs(const Graph& dense, const SmallNetwork& small, const MatchSettings& settings)
      : loss_(dense, small, settings.terms),
        dense_(part_for(dense, loss_.dense_values()), GraphModuleOptions{.trainable = false}) {}

  /// Returns the corresponding values of the small network.
  const std::vector<ValueId>& values() const { return loss_.values(); }

  void learn(const FitSamples& samples) {
    dense_->to(samples.device());
    const BatchSource feed = samples.batches();
    for (int64_t i = 0; i < kTeachers; ++i) {
      std::optional<SampleBatch> batch = feed();
      if (!batch) break;
      loss_.learn(predictions(StepPart(std::move(*batch), i)));
    }
    if (samples.ranks() != nullptr) loss_.average_over(*samples.ranks());
  }

  Objective objective() {
    return [this](const std::vector<at::Tensor>& outputs, const StepPart& part) {
      const std::vector<at::Tensor> requested = predictions(part);
      const std::lock_guard lock(comparing_);
      return loss_(requested, outputs);
    };
  }

  std::vector<std::string> notes() const { return loss_.notes(); }

 private:
  std::vector<at::Tensor> predictions(const StepPart& part) {
    {
      const std::lock_guard lock(mutex_);
      if (const auto kept = predictions_.find(part.index); kept != predictions_.end())
        return kept->second;
    }
    const at::NoGradGuard no_grad;
    std::vector<at::Tensor> predictions = dense_->forward(part.inputs);
    const std::lock_guard lock(mutex_);
    for (const at::Tensor& answer : predictions) bytes_ += answer.nbytes();
    if (bytes_ <= kAnswerBytes) predictions_.emplace(part.index, predictions);
    return predictions;
  }

  OutputLoss loss_;
  std::mutex comparing_;  ///< guards the loss
  GraphModule dense_;
  std::mutex mutex_;                                        ///< guards the members below
  std::map<int64_t, std::vector<at::Tensor>> predictions_;  ///< by batch
  size_t bytes_ = 0;                                        ///< of all cached outputs
};

/// The small network, sharing its weights, but not gradients, with other replicas.
class Replica final : public TrainedModule {
 public:
  /// @param part     computes `values` values, then the states
  /// @param trained  names of the weights; empty: all
  /// @param first    null for the first one
  Replica(const SmallNetwork& network, const Graph& part, size_t values, c10::Device device,
          const std::set<std::string>& trained, const Replica* first)
      : network_(network), net_(part, GraphModuleOptions{.fuses = true}), values_(values) {
    net_->to(device);
    const auto is_half = [](const Weight& weight) { return weight.dtype == DType::kFloat16; };
    if (std::ranges::any_of(part.weights, is_half)) {  // whose steps would underflow
      net_->widen_halves();
      net_->to(at::kFloat);
    }
    for (const auto& [weight, tensor] : net_->weights()) {
      if (first != nullptr) tensor.set_data(first->net_->weights().at(weight).detach());
      if (!tensor.requires_grad()) continue;
      if (trained.empty() || trained.contains(weight)) {
        parameters_.emplace_back(weight, tensor);
      } else {
        tensor.requires_grad_(false);
      }
    }
  }

  /// For validation, its states are its own, as in deployment. Training steps use the dense
  /// network's, since its own, without gradients, would mislead it; unless they do not fit.
  std::vector<at::Tensor> outputs(const SampleBatch& batch) override {
    std::vector<at::Tensor> inputs = small_inputs(network_, batch.inputs);
    if (!batch.states) return net_->forward(inputs);
    const bool others = begin_states(network_, *batch.states, inputs);
    const bool own = others || !trains_;
    for (size_t s = 0; s < states_.size(); ++s) inputs[(*batch.states)[s].input] = states_[s];
    std::vector<at::Tensor> values = net_->forward(inputs);
    states_.clear();
    for (size_t v = values_; v < values.size() && own; ++v) states_.push_back(values[v].detach());
    values.resize(values_);
    return values;
  }

  std::vector<NamedParameter> parameters() override { return parameters_; }
  std::vector<NamedParameter> buffers() override { return {}; }
  /// It always computes in evaluation mode; a stream begins again.
  void train(bool on) override {
    trains_ = on;
    states_.clear();
  }

  std::vector<NamedParameter> weights() const {
    return {net_->weights().begin(), net_->weights().end()};
  }

 private:
  const SmallNetwork& network_;
  GraphModule net_;
  const size_t values_;
  std::vector<NamedParameter> parameters_;
  bool trains_ = false;
  std::vector<at::Tensor> states_;  ///< for the next batch
};

/// A linear warm-up, during which Adam's moments settle, then a cosine to zero, along the epochs.
/// If the time limit is too short for these, it decides instead, and the result depends on it.
class Progress {
 public:
  Progress(const MatchSettings& settings, const FitSamples& samples)
      : settings_(settings), samples_(samples) {}

  std::optional<double> rate(const Position& at) {
    const double done = static_cast<double>(at.batch) / static_cast<double>(samples_.count());
    share_ = (static_cast<double>(at.epoch) + done) / settings_.epochs;
    if (settings_.minutes > 0) follow_time();
    if (is_over()) return {};
    return settings_.lr * (share_ < kStart ? share_ / kStart : (1 + std::cos(M_PI * share_)) / 2);
  }
  bool is_over() const { return share_ >= 1; }
  bool by_time() const { return by_time_; }

 private:
  void follow_time() {
    const double passed = (machine::steady_seconds() - begin_) / 60 / settings_.minutes;
    by_time_ = by_time_ || passed >= 1 || passed > share_ + kAfter;
    if (by_time_) share_ = std::max(share_, passed);
    if (samples_.ranks() != nullptr) share_ = samples_.ranks()->share(share_);
  }

  const MatchSettings& settings_;
  const FitSamples& samples_;
  const double begin_ = machine::steady_seconds();
  double share_ = 0;  ///< finished share of the training
  bool by_time_ = false;
};

std::vector<at::Tensor> copies_of(const std::vector<NamedParameter>& parameters) {
  std::vector<at::Tensor> copies;
  for (const auto& [name, parameter] : parameters) copies.push_back(parameter.detach().clone());
  return copies;
}

/// Trains the small network for an objective of `values`.
class Fitting {
 public:
  /// @param trained  names of the weights; empty: all
  Fitting(const SmallNetwork& small, const FitSamples& samples, const std::vector<ValueId>& values,
          const std::set<std::string>& trained = {})
      : samples_(samples) {
    std::vector<ValueId> computed = values;
    if (samples.states() != nullptr) {
      for (const ValueId state : state_outputs(small, *samples.states())) computed.push_back(state);
    }
    const Graph part = part_for(small.graph(), computed);
    for (int r = 0; r < samples.parts(); ++r) {
      replicas_.push_back(std::make_unique<Replica>(small, part, values.size(), samples.device(),
                                                    trained,
                                                    r == 0 ? nullptr : replicas_.front().get()));
    }
    has_values_ = !values.empty();
  }

  /// @param name  of the trained part, for `say`
  void run(Objective objective, const std::vector<std::string>& fixed,
           const MatchSettings& settings, const std::string& name, const Say& say) {
    const std::vector<NamedParameter> parameters = replicas_.front()->parameters();
    if (!has_values_ || parameters.empty() || samples_.count() == 0) return;
    Progress progress(settings, samples_);
    Trainer trainer(training(std::move(objective), progress, keeping_zeros(parameters, fixed)));
    double best = validation_loss(trainer);
    if (say) say(name + ": loss on validation batches " + formatted("%.4f", best));
    std::vector<at::Tensor> kept = copies_of(parameters);
    trainer.run(settings.epochs, [&](int64_t epoch, const EpochTimes& times) {
      const double loss = validation_loss(trainer);
      if (say) {
        say(name + ": epoch " + std::to_string(epoch + 1) + " of " +
            std::to_string(settings.epochs) + ", loss " + formatted("%.4f", times.loss) +
            ", on validation batches " + formatted("%.4f", loss));
      }
      if (!std::isfinite(times.loss)) return true;
      if (loss >= best) return progress.is_over();
      best = loss;
      kept = copies_of(parameters);
      return progress.is_over();
    });
    const at::NoGradGuard no_grad;
    for (size_t i = 0; i < kept.size(); ++i) at::Tensor(parameters[i].second).copy_(kept[i]);
    by_time_ = progress.by_time();
    if (by_time_ && say) say(name + ": " + kByTime);
  }

  std::vector<NamedParameter> weights() const { return replicas_.front()->weights(); }
  bool ended_by_time() const { return by_time_; }

 private:
  Training training(Objective objective, Progress& progress, std::function<void()> hook) {
    std::vector<TrainedModule*> modules;
    for (const auto& replica : replicas_) modules.push_back(replica.get());
    std::vector<at::Tensor> parameters;
    for (const auto& [name, tensor] : replicas_.front()->parameters()) parameters.push_back(tensor);
    RelativeSteps adam = relative_adam(parameters);
    return {
        .modules = std::move(modules),
        .samples = {.begin =
                        [this](int64_t /*epoch*/) { return samples_.steps(/*validating=*/false); }},
        .objective = std::move(objective),
        .schedule = [&progress](const Position& at) { return progress.rate(at); },
        .optimizer = std::move(adam.optimizer),
        .scales = std::move(adam.sizes),
        .device = samples_.device(),
        .one_core_each = true,
        .ranks = samples_.ranks(),
        .after_backward = std::move(hook)};
  }

  /// Returns the mean loss on the validation batches.
  double validation_loss(Trainer& trainer) {
    const at::NoGradGuard no_grad;
    for (const auto& replica : replicas_) replica->train(false);
    const StepSource feed = samples_.steps(/*validating=*/true, [this](const SampleBatch& batch) {
      // It computes the next batch's states.
      if (batch.states) replicas_.front()->outputs(batch);
    });
    double sum = 0;
    int64_t count = 0;
    while (const std::optional<StepBatch> group = feed()) {
      for (const at::Tensor& loss : trainer.losses(group->parts)) {
        if (loss.defined()) sum += loss.item<double>();
        ++count;
      }
    }
    return mean_of_ranks(samples_.ranks(), sum, static_cast<double>(count));
  }

  const FitSamples& samples_;
  std::vector<std::unique_ptr<Replica>> replicas_;
  bool has_values_ = false;
  bool by_time_ = false;
};

}  // namespace

Matched match_outputs(const Graph& dense, SmallNetwork& small,
                      const std::vector<std::string>& fixed, const MatchData& data,
                      const MatchSettings& settings) {
  DenseOutputs outputs(dense, small, settings);
  const FitSamples samples(data, small.graph());
  outputs.learn(samples);
  Fitting fitting(small, samples, outputs.values());
  fitting.run(outputs.objective(), fixed, settings, "outputs", data.say);
  const int changed = assign_trained(small, fitting.weights(), fixed,
                                     "training to match the dense network's outputs");
  std::vector<std::string> notes = outputs.notes();
  if (fitting.ended_by_time()) notes.emplace_back(kByTime);
  return {changed, std::move(notes)};
}

int match_blocks(const Graph& dense, SmallNetwork& small, const std::vector<std::string>& fixed,
                 const MatchData& data, const MatchSettings& settings) {
  const std::vector<TrainedBlock> blocks = blocks_of(small.graph());
  const FitSamples samples(data, small.graph());
  MatchSettings each = settings;
  each.epochs = std::max(1, settings.epochs / kBlockShare);
  each.minutes = settings.minutes * kBlocksMinutes / static_cast<double>(blocks.size());
  int changed = 0;
  for (size_t b = 0; b < blocks.size(); ++b) {
    const Graph& graph = small.graph();
    each.terms.clear();  // of several for a value, the first counts
    for (const ValueId value : blocks[b].values) each.terms.push_back({graph.value(value).name});
    for (const ValueId output : graph.outputs) each.terms.push_back({graph.value(output).name, 0});
    DenseOutputs outputs(dense, small, each);
    outputs.learn(samples);
    Fitting fitting(small, samples, outputs.values(), blocks[b].weights);
    fitting.run(outputs.objective(), fixed, each,
                "block " + std::to_string(b + 1) + " of " + std::to_string(blocks.size()),
                data.say);
    changed += assign_trained(small, fitting.weights(), fixed,
                              "training to match the dense network's blocks");
  }
  return changed;
}

int fit_targets(SmallNetwork& small, const std::vector<std::string>& fixed, const MatchData& data,
                const Loss& loss, const MatchSettings& settings) {
  const FitSamples samples(data, small.graph());
  Fitting fitting(small, samples, small.graph().outputs);
  std::mutex mutex;  // user-defined losses need not be thread-safe
  const auto objective = [&](const std::vector<at::Tensor>& outputs, const StepPart& part) {
    const std::lock_guard lock(mutex);
    return loss(outputs, part);
  };
  fitting.run(objective, fixed, settings, "finetune", data.say);
  return assign_trained(small, fitting.weights(), fixed, "fine-tuning");
}

std::function<void()> keeping_zeros(const std::vector<NamedParameter>& parameters,
                                    const std::vector<std::string>& fixed) {
  std::vector<std::pair<at::Tensor, at::Tensor>> zeros;
  for (const auto& [name, parameter] : parameters) {
    if (contains(fixed, name)) zeros.emplace_back(parameter, parameter.detach().eq(0));
  }
  return [zeros = std::move(zeros)] {
    for (const auto& [parameter, zero] : zeros) {
      if (parameter.grad().defined()) at::Tensor(parameter).mutable_grad().masked_fill_(zero, 0);
    }
  };
}

int assign_trained(SmallNetwork& small, const std::vector<NamedParameter>& tensors,
                   const std::vector<std::string>& fixed, const std::string& reason) {
  int changed = 0;
  for (const auto& [name, tensor] : tensors) {
    const auto& weights = small.graph().weights;
    const auto weight = std::ranges::find(weights, name, &Weight::name);
    if (weight == weights.end() || !tensor.is_floating_point()) continue;
    const at::Tensor old = torch_io::to_tensor(*weight);
    at::Tensor now = tensor.detach().cpu().to(old.scalar_type()).contiguous();
    if (at::equal(old, now)) continue;
    // Single elements that were pruned stay zero.
    if (contains(fixed, name)) now = now.masked_fill(old.eq(0), 0);
    const auto* bytes = static_cast<const std::byte*>(now.data_ptr());
    small.assign(*weight, {bytes, bytes + now.nbytes()}, reason);
    ++changed;
  }
  return changed;
}

}  // namespace parsimony::training
