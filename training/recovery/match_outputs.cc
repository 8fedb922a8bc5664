#include "parsimony/training/recovery/match_outputs.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <torch/optim/adam.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <span>

#include "parsimony/base/errors.h"
#include "parsimony/base/ranges.h"
#include "parsimony/base/words.h"
#include "parsimony/engines/timing.h"
#include "parsimony/speedup/fit_layers.h"
#include "parsimony/torch_io/executor/graph_module.h"
#include "parsimony/torch_io/side_by_side.h"
#include "parsimony/torch_io/tensor.h"
#include "parsimony/training/loop/output_loss.h"
#include "parsimony/training/recovery/blocks.h"
#include "parsimony/training/recovery/ends.h"

namespace parsimony::training {
namespace {

// One batch in so many only judges.
constexpr int64_t kJudges = 8;
// So many batches say how much the values spread.
constexpr int64_t kTeachers = 32;
// So many bytes of the dense network's answers are kept from epoch to epoch.
constexpr size_t kAnswerBytes = size_t{512} << 20;
// A step's batch has so many parts, which run side by side: as many wherever it runs, since their
// gradients are summed.
constexpr int kParts = 4;
// Of a tensor, in its steps.
constexpr double kSmallestSize = 1e-3;
constexpr const char* kByTime =
    "the minutes decided how long it trained; another run may give other weights";
// By so much the share of the epochs may lag behind that of the minutes.
constexpr double kBehind = 0.1;
// The share of the training in which the rate rises.
constexpr double kStart = 0.05;
// The whole network has so many times the epochs of a block.
constexpr int kBlockShare = 4;
// The share of the minutes that all blocks have together.
constexpr double kBlocksMinutes = 0.5;

/// What the small network is trained for.
class Objective {
 public:
  virtual ~Objective() = default;
  /// What it computes for that.
  virtual const std::vector<ValueId>& values() const = 0;
  /// Sees every batch once, beforehand. @param i  its number
  virtual void learn(int64_t i, const SampleBatch& batch) = 0;
  /// Takes what the ranks have learned together.
  virtual void average_over(const RankGroup& ranks) = 0;
  /// What the loss compares with; called from several threads.
  virtual std::vector<at::Tensor> answers(int64_t i, const SampleBatch& batch) = 0;
  /// A scalar, or undefined. @param small  its values
  virtual at::Tensor loss(const std::vector<at::Tensor>& answers, const SampleBatch& batch,
                          const std::vector<at::Tensor>& small) = 0;
};

/// The dense network's outputs.
class DenseOutputs final : public Objective {
 public:
  DenseOutputs(const Graph& dense, const SmallNetwork& small, const MatchSettings& settings)
      : loss_(dense, small, settings.terms),
        dense_(part_for(dense, loss_.dense_values()), GraphModuleOptions{.trainable = false}) {}

  const std::vector<ValueId>& values() const override { return loss_.values(); }

  void learn(int64_t i, const SampleBatch& batch) override {
    if (i == 0) dense_->to(batch.inputs.front().device());
    if (i < kTeachers) loss_.learn(answers(i, batch));
  }
  void average_over(const RankGroup& ranks) override { loss_.average_over(ranks); }

  std::vector<at::Tensor> answers(int64_t i, const SampleBatch& batch) override {
    {
      const std::lock_guard lock(mutex_);
      if (const auto kept = answers_.find(i); kept != answers_.end()) return kept->second;
    }
    const at::NoGradGuard no_grad;
    std::vector<at::Tensor> answers = dense_->forward(batch.inputs);
    const std::lock_guard lock(mutex_);
    for (const at::Tensor& answer : answers) bytes_ += answer.nbytes();
    if (bytes_ <= kAnswerBytes) answers_.emplace(i, answers);
    return answers;
  }

  at::Tensor loss(const std::vector<at::Tensor>& answers, const SampleBatch& /*batch*/,
                  const std::vector<at::Tensor>& small) override {
    return loss_(answers, small);
  }

  std::vector<std::string> notes() const { return loss_.notes(); }

 private:
  OutputLoss loss_;
  GraphModule dense_;
  std::mutex mutex_;                                    ///< of what follows
  std::map<int64_t, std::vector<at::Tensor>> answers_;  ///< of batches
  size_t bytes_ = 0;                                    ///< of all answers so far
};

/// What the data say.
class Targets final : public Objective {
 public:
  Targets(const SmallNetwork& small, const Loss& loss)
      : outputs_(small.graph().outputs), loss_(loss) {}

  const std::vector<ValueId>& values() const override { return outputs_; }
  void learn(int64_t /*i*/, const SampleBatch& /*batch*/) override {}
  void average_over(const RankGroup& /*ranks*/) override {}
  std::vector<at::Tensor> answers(int64_t /*i*/, const SampleBatch& /*batch*/) override {
    return {};
  }
  at::Tensor loss(const std::vector<at::Tensor>& /*answers*/, const SampleBatch& batch,
                  const std::vector<at::Tensor>& small) override {
    return loss_(small, batch);
  }

 private:
  const std::vector<ValueId>& outputs_;
  const Loss& loss_;
};

class Fitting {
 public:
  /// @param trained  by weights' names; empty: all
  Fitting(const SmallNetwork& small, const std::vector<std::string>& fixed, const MatchData& data,
          const MatchSettings& settings, Objective& objective, std::string name,
          const std::set<std::string>& trained = {})
      : network_(small),
        objective_(objective),
        data_(data),
        replicas_(has_states(data.batches) ? 1 : kParts),
        batch_(batch_of(small.graph())),
        settings_(settings),
        name_(std::move(name)) {
    const Feed feed = data_.batches(batch_);
    std::vector<ValueId> values = objective.values();
    for (; const std::optional<SampleBatch> one = feed(); ++count_) {
      if (count_ == 0) device_ = one->inputs.front().device();
      objective.learn(count_, *one);
      if (count_ > 0 || !one->states) continue;
      for (const ValueId output : state_outputs(small, *one->states)) values.push_back(output);
    }
    if (data_.ranks != nullptr) objective.average_over(*data_.ranks);
    const Graph part = part_for(small.graph(), values);
    for (int r = 0; r < replicas_; ++r) add_replica(part, trained);
    for (const auto& [weight, tensor] : small_.front()->weights()) {
      if (tensor.requires_grad()) {
        zeros_.push_back(contains(fixed, weight) ? tensor.detach().eq(0) : at::Tensor());
      }
    }
  }

  void run() {
    const auto& say = data_.say;
    if (objective_.values().empty() || parameters().empty() || count_ == 0) return;
    const double begin = machine::steady_seconds();
    double best = judge();
    if (say) say(name_ + ": loss on batches that only judge " + formatted("%.4f", best));
    std::vector<at::Tensor> kept = snapshot();
    torch::optim::Adam optimizer(groups());
    for (int epoch = 0; epoch < settings_.epochs && progress_ < 1; ++epoch) {
      const double trained = train(optimizer, begin, epoch);
      const double judged = judge();
      if (say) {
        say(name_ + ": epoch " + std::to_string(epoch + 1) + " of " +
            std::to_string(settings_.epochs) + ", loss " + formatted("%.4f", trained) +
            ", on batches that only judge " + formatted("%.4f", judged));
      }
      if (!std::isfinite(trained)) break;
      if (judged >= best) continue;
      best = judged;
      kept = snapshot();
    }
    if (by_time_ && say) say(name_ + ": " + kByTime);
    const at::NoGradGuard no_grad;
    for (size_t i = 0; i < kept.size(); ++i) parameters()[i].copy_(kept[i]);
  }

  std::vector<NamedParameter> weights() const {
    const auto& weights = small_.front()->weights();
    return {weights.begin(), weights.end()};
  }

  bool ended_by_time() const { return by_time_; }

 private:
  struct Numbered {
    int64_t i;
    SampleBatch batch;
  };
  using Group = std::vector<Numbered>;

  static bool has_states(const Batches& batches) {
    const std::optional<SampleBatch> first = batches(1)();
    return first && first->states;
  }

  /// Replicas share their weights, but not these weights' gradients.
  void add_replica(const Graph& part, const std::set<std::string>& trained) {
    GraphModule& replica = small_.emplace_back(part, GraphModuleOptions{.fuses = true});
    replica->to(device_);
    const auto is_half = [](const Weight& weight) { return weight.dtype == DType::kFloat16; };
    if (std::ranges::any_of(part.weights, is_half)) {  // whose steps would underflow
      replica->widen_halves();
      replica->to(at::kFloat);
    }
    std::vector<at::Tensor>& parameters = parameters_.emplace_back();
    for (const auto& [weight, tensor] : replica->weights()) {
      if (small_.size() > 1) tensor.set_data(small_.front()->weights().at(weight).detach());
      if (!tensor.requires_grad()) continue;
      if (trained.empty() || trained.contains(weight)) {
        parameters.push_back(tensor);
      } else {
        tensor.requires_grad_(false);
      }
    }
  }

  std::vector<at::Tensor>& parameters() { return parameters_.front(); }

  /// Of a step the part of one replica.
  int64_t batch_of(const Graph& graph) const {
    if (fixed_batch(graph) > 0) return data_.batch;
    const int ranks = data_.ranks == nullptr ? 1 : data_.ranks->size();
    return std::max<int64_t>(1, data_.batch / (replicas_ * ranks));
  }

  /// With few batches the last one; a single one does both.
  bool judges(int64_t i) const {
    const int64_t period = std::min(kJudges, count_);
    return i % period == period - 1;
  }
  bool trains(int64_t i) const { return count_ == 1 || !judges(i); }

  /// The small network's values. Where it is judged its states are its own, as they will be. Steps
  /// take the dense network's, since its own ones, without gradients, lead it astray; unless they
  /// do not fit.
  std::vector<at::Tensor> forward(size_t replica, const SampleBatch& batch) {
    std::vector<at::Tensor> inputs = small_inputs(network_, batch.inputs);
    if (!batch.states) return small_[replica]->forward(inputs);
    const bool others = begin_states(network_, *batch.states, inputs);
    const bool own = others || !at::GradMode::is_enabled();
    for (size_t s = 0; s < states_.size(); ++s) inputs[(*batch.states)[s].input] = states_[s];
    std::vector<at::Tensor> values = small_[replica]->forward(inputs);
    states_.clear();
    const size_t count = objective_.values().size();
    for (size_t v = count; v < values.size() && own; ++v) states_.push_back(values[v].detach());
    values.resize(count);
    return values;
  }

  /// Calls `use` with the batches of an epoch, as many at a time as there are replicas, until it
  /// returns false.
  template <typename Use>
  void each_group(bool (Fitting::*wanted)(int64_t) const, const Use& use) {
    states_.clear();
    const Feed feed = data_.batches(batch_);
    Group group;
    for (int64_t i = 0; std::optional<SampleBatch> batch = feed(); ++i) {
      if (!(this->*wanted)(i)) {
        // It may lead to the states of the next one.
        if (batch->states && !at::GradMode::is_enabled()) forward(0, *batch);
        continue;
      }
      group.push_back({i, std::move(*batch)});
      if (std::ssize(group) < replicas_) continue;
      if (!use(group)) return;
      group.clear();
    }
    if (!group.empty()) use(group);
  }

  /// The losses of a group, each by a replica of its own; with gradients of their mean, if
  /// gradients are recorded. Undefined ones have nothing to compare.
  std::vector<at::Tensor> losses(const Group& group) {
    int64_t samples = 0;
    for (const Numbered& one : group) samples += one.batch.count;
    std::vector<at::Tensor> losses(group.size());
    torch_io::side_by_side(std::ssize(group), device_, [&](int64_t r) {
      const auto& [i, batch] = group[r];
      const std::vector<at::Tensor> answers = objective_.answers(i, batch);
      const std::vector<at::Tensor> values = forward(r, batch);
      at::Tensor loss;
      {
        const std::lock_guard lock(mutex_);  // losses of the user's need not know threads
        loss = objective_.loss(answers, batch, values);
      }
      if (!loss.defined()) return;
      if (loss.requires_grad()) {
        const double share = static_cast<double>(batch.count) / static_cast<double>(samples);
        (loss * share).backward();
      }
      losses[r] = loss;
    });
    return losses;
  }

  /// The mean loss on the batches that judge.
  double judge() {
    const at::NoGradGuard no_grad;
    double sum = 0;
    int64_t count = 0;
    each_group(&Fitting::judges, [&](const Group& group) {
      for (const at::Tensor& loss : losses(group)) {
        if (loss.defined()) sum += loss.item<double>();
        ++count;
      }
      return true;
    });
    return mean_of_ranks(sum, count);
  }

  double mean_of_ranks(double sum, int64_t count) const {
    const at::Tensor both = at::tensor({sum, static_cast<double>(count)}, at::kDouble);
    if (data_.ranks != nullptr) data_.ranks->sum(both);
    return both[0].item<double>() / std::max(1.0, both[1].item<double>());
  }

  /// One epoch. @returns the mean loss
  double train(torch::optim::Optimizer& optimizer, double begin, int epoch) {
    const at::AutoGradMode gradients(true);
    double sum = 0;
    int64_t count = 0;
    each_group(&Fitting::trains, [&](const Group& group) {
      const double done = static_cast<double>(group.front().i) / static_cast<double>(count_);
      set_progress(begin, epoch + done);
      if (progress_ >= 1) return false;
      set_rates(optimizer);
      for (const at::Tensor& loss : losses(group)) {
        if (!loss.defined() || !loss.requires_grad()) return false;
        sum += loss.item<double>();
        ++count;
      }
      step(optimizer);
      return true;
    });
    return mean_of_ranks(sum, count);
  }

  /// Steps are relative to a tensor's size, as in Shazeer and Stern, "Adafactor", 2018: one rate
  /// then suits weights of any size.
  std::vector<torch::optim::OptimizerParamGroup> groups() {
    std::vector<torch::optim::OptimizerParamGroup> groups;
    for (const at::Tensor& parameter : parameters()) {
      const double size = parameter.detach().square().mean().sqrt().item<double>();
      sizes_.push_back(std::max(size, kSmallestSize));
      groups.emplace_back(std::vector<at::Tensor>{parameter});
    }
    return groups;
  }

  /// A linear start, on which Adam's moments settle, then a cosine to zero.
  void set_rates(torch::optim::Optimizer& optimizer) {
    const double rate =
        progress_ < kStart ? progress_ / kStart : (1 + std::cos(M_PI * progress_)) / 2;
    for (size_t i = 0; i < sizes_.size(); ++i) {
      optimizer.param_groups()[i].options().set_lr(settings_.lr * rate * sizes_[i]);
    }
  }

  void step(torch::optim::Optimizer& optimizer) {
    for (size_t p = 0; p < zeros_.size(); ++p) {
      at::Tensor& gradient = parameters()[p].mutable_grad();
      for (std::vector<at::Tensor>& others : std::span(parameters_).subspan(1)) {
        at::Tensor& other = others[p].mutable_grad();
        if (!other.defined()) continue;
        gradient = gradient.defined() ? gradient.add_(other) : other;
        other.reset();
      }
      if (gradient.defined() && zeros_[p].defined()) gradient.masked_fill_(zeros_[p], 0);
    }
    if (data_.ranks != nullptr) average_gradients(*data_.ranks);
    optimizer.step();
    for (at::Tensor& parameter : parameters()) parameter.mutable_grad().reset();
  }

  void average_gradients(const RankGroup& ranks) {
    std::vector<at::Tensor> gradients;
    for (const at::Tensor& parameter : parameters()) {
      if (parameter.grad().defined()) gradients.push_back(parameter.grad());
    }
    const at::Tensor all = at::flatten_dense_tensors(gradients);
    ranks.sum(all.div_(ranks.size()));
    const std::vector<at::Tensor> means = at::unflatten_dense_tensors(all, gradients);
    for (size_t i = 0; i < means.size(); ++i) gradients[i].copy_(means[i]);
  }

  /// The share of the epochs that is over. Where the time will not suffice it decides instead, and
  /// the result depends on it.
  void set_progress(double begin, double epochs) {
    progress_ = epochs / settings_.epochs;
    if (settings_.minutes <= 0) return;
    const double passed = (machine::steady_seconds() - begin) / 60 / settings_.minutes;
    by_time_ = by_time_ || passed >= 1 || passed > progress_ + kBehind;
    if (by_time_) progress_ = std::max(progress_, passed);
    if (data_.ranks != nullptr) progress_ = data_.ranks->share(progress_);
  }

  std::vector<at::Tensor> snapshot() {
    std::vector<at::Tensor> copies;
    for (const at::Tensor& parameter : parameters()) copies.push_back(parameter.detach().clone());
    return copies;
  }

  const SmallNetwork& network_;
  Objective& objective_;
  std::vector<GraphModule> small_;  ///< replicas
  const MatchData& data_;
  c10::Device device_ = c10::kCPU;
  const int replicas_;  ///< one for each part of a batch
  const int64_t batch_;
  const MatchSettings& settings_;
  const std::string name_;
  std::vector<at::Tensor> states_;                   ///< of the small network, for the next batch
  std::vector<std::vector<at::Tensor>> parameters_;  ///< of each replica
  std::mutex mutex_;                                 ///< of the objective's loss
  std::vector<double> sizes_;                        ///< root mean square of a parameter
  std::vector<at::Tensor> zeros_;  ///< of a parameter: elements that stay zero; undefined: none
  int64_t count_ = 0;
  double progress_ = 0;
  bool by_time_ = false;
};

}  // namespace

Matched match_outputs(const Graph& dense, SmallNetwork& small,
                      const std::vector<std::string>& fixed, const MatchData& data,
                      const MatchSettings& settings) {
  DenseOutputs objective(dense, small, settings);
  Fitting fitting(small, fixed, data, settings, objective, "outputs");
  fitting.run();
  const int changed =
      take_over(small, fitting.weights(), fixed, "training to the dense network's outputs");
  std::vector<std::string> notes = objective.notes();
  if (fitting.ended_by_time()) notes.emplace_back(kByTime);
  return {changed, std::move(notes)};
}

int match_blocks(const Graph& dense, SmallNetwork& small, const std::vector<std::string>& fixed,
                 const MatchData& data, const MatchSettings& settings) {
  const std::vector<TrainedBlock> blocks = blocks_of(small.graph());
  MatchSettings each = settings;
  each.epochs = std::max(1, settings.epochs / kBlockShare);
  each.minutes = settings.minutes * kBlocksMinutes / static_cast<double>(blocks.size());
  int changed = 0;
  for (size_t b = 0; b < blocks.size(); ++b) {
    const Graph& graph = small.graph();
    each.terms.clear();  // of several for a value, the first counts
    for (const ValueId value : blocks[b].values) each.terms.push_back({graph.value(value).name});
    for (const ValueId output : graph.outputs) each.terms.push_back({graph.value(output).name, 0});
    DenseOutputs objective(dense, small, each);
    const std::string name =
        "block " + std::to_string(b + 1) + " of " + std::to_string(blocks.size());
    Fitting fitting(small, fixed, data, each, objective, name, blocks[b].weights);
    fitting.run();
    changed += take_over(small, fitting.weights(), fixed, "training to the dense network's blocks");
  }
  return changed;
}

int fit_targets(SmallNetwork& small, const std::vector<std::string>& fixed, const MatchData& data,
                const Loss& loss, const MatchSettings& settings) {
  Targets objective(small, loss);
  Fitting fitting(small, fixed, data, settings, objective, "finetune");
  fitting.run();
  return take_over(small, fitting.weights(), fixed, "fine-tuning");
}

int take_over(SmallNetwork& small, const std::vector<NamedParameter>& tensors,
              const std::vector<std::string>& fixed, const std::string& reason) {
  int changed = 0;
  for (const auto& [name, tensor] : tensors) {
    const auto& weights = small.graph().weights;
    const auto weight = std::ranges::find(weights, name, &Weight::name);
    if (weight == weights.end() || !tensor.is_floating_point()) continue;
    const at::Tensor old = torch_io::to_tensor(*weight);
    at::Tensor now = tensor.detach().cpu().to(old.scalar_type()).contiguous();
    if (at::equal(old, now)) continue;
    // What level pruning has zeroed stays so.
    if (contains(fixed, name)) now = now.masked_fill(old.eq(0), 0);
    const auto* bytes = static_cast<const std::byte*>(now.data_ptr());
    small.assign(*weight, {bytes, bytes + now.nbytes()}, reason);
    ++changed;
  }
  return changed;
}

}  // namespace parsimony::training
