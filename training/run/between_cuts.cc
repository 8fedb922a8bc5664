#include "parsimony/training/run/between_cuts.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <torch/serialize/archive.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "parsimony/training/errors.h"

namespace parsimony::training {
namespace {

/// Thrown if `what` keeps tensors of all parameters across cuts.
ConfigError norms_keep_no_record(std::string_view what) {
  return ConfigError("\"batch_norm\" cannot be combined with ", what,
                     ": the values kept per parameter would not be pruned with it");
}

bool has_scale(const std::vector<ParameterGroup>& groups) {
  return std::ranges::any_of(groups, [](const ParameterGroup& group) {
    return std::ranges::any_of(group.slices, &ParameterSlices::scale);
  });
}

void check_norms(const Recipe& recipe) {
  if (!recipe.train.batch_norm || !recipe.prune) return;
  if (recipe.prune->schedule == PruningSchedule::kLottery) {
    throw norms_keep_no_record("\"schedule\": \"lottery\"");
  }
  if (asks_for(recipe.prune->config, "movement")) {
    throw norms_keep_no_record("\"criterion\": \"movement\"");
  }
}

/// Writes the names and the tensors under `key`.
void write_tensors(torch::serialize::OutputArchive& archive, const std::string& key,
                   const NamedTensors& tensors) {
  c10::List<std::string> names;
  c10::List<at::Tensor> values;
  for (const auto& [name, tensor] : tensors) {
    names.push_back(name);
    values.push_back(tensor.cpu());
  }
  archive.write(key + "_names", c10::IValue(names));
  archive.write(key + "_values", c10::IValue(values));
}

NamedTensors read_tensors(torch::serialize::InputArchive& archive, const std::string& key) {
  c10::IValue names;
  c10::IValue values;
  archive.read(key + "_names", names);
  archive.read(key + "_values", values);
  const std::vector<at::Tensor> list = values.toTensorVector();
  NamedTensors tensors;
  size_t next = 0;
  for (const c10::IValue& name : names.toListRef()) tensors[name.toStringRef()] = list.at(next++);
  return tensors;
}

}  // namespace

Rewind::Rewind(TrainableModel& net) {
  for (const auto& [name, tensor] : all_tensors(net)) {
    values_[name] = tensor.detach().cpu().clone();
  }
}

void Rewind::restore(TrainableModel& net) const {
  const at::NoGradGuard no_grad;
  for (const auto& [name, tensor] : all_tensors(net)) {
    const auto found = values_.find(name);
    if (found == values_.end() || found->second.sizes() != tensor.sizes()) {
      throw errors::other_values(name, "its earlier values have another shape");
    }
    at::Tensor(tensor).copy_(found->second);
  }
}

BetweenCuts::BetweenCuts(const Recipe& recipe, TrainableModel& net) : recipe_(recipe), net_(net) {
  check_norms(recipe);
  if (rewinds_to(0)) rewind_.emplace(net);
  if (recipe.prune && asks_for(recipe.prune->config, "movement")) movement_.emplace(net);
}

bool BetweenCuts::rewinds_to(int epoch) const {
  return recipe_.prune && recipe_.prune->schedule == PruningSchedule::kLottery &&
         recipe_.prune->rewind_epoch == epoch;
}

std::function<void()> BetweenCuts::begin_stage(const at::Tensor& example, bool before_last_cut) {
  penalty_.reset();
  if (!before_last_cut) return {};
  const PruneSettings& prune = *recipe_.prune;
  if (prune.penalty.any()) {
    std::vector<ParameterGroup> groups =
        net_.groups(example, prune.config.granularity.value_or(Granularity::kChannel));
    if (prune.penalty.slimming > 0 && !has_scale(groups)) {
      throw ConfigError(
          "penalty: slimming: no BatchNorm scales prunable channels; use \"group\" instead");
    }
    penalty_.emplace(prune.penalty, std::move(groups));
  }
  if (!movement_ && !penalty_) return {};
  return [this] {
    if (movement_) movement_->see(net_);
    if (penalty_) penalty_->add_gradients();
  };
}

void BetweenCuts::begin_epoch() {
  if (penalty_) penalty_->begin_epoch();
}

void BetweenCuts::end_warm_up_epoch(int epochs) {
  if (rewinds_to(epochs)) rewind_.emplace(net_);
}

void BetweenCuts::follow(const Plan& plan) {
  if (movement_) movement_->follow(plan);
  if (!rewind_) return;
  rewind_->follow(plan);
  rewind_->restore(net_);
}

Measurement BetweenCuts::with_movement(Measurement by_data) const {
  return [this, by_data = std::move(by_data)](const Graph& graph, const Facts& facts,
                                              const Coupling& coupling, const Needs& needs) {
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

void BetweenCuts::save(torch::serialize::OutputArchive& archive) const {
  write_tensors(archive, "rewind", rewind_ ? rewind_->values() : NamedTensors());
  write_tensors(archive, "movement", movement_ ? movement_->sums() : NamedTensors());
}

void BetweenCuts::load(torch::serialize::InputArchive& archive) {
  if (NamedTensors values = read_tensors(archive, "rewind"); !values.empty()) {
    rewind_.emplace(std::move(values));
  }
  if (NamedTensors sums = read_tensors(archive, "movement"); !sums.empty()) {
    movement_.emplace(std::move(sums));
  }
}

namespace {

constexpr double kSpread = 4;  // strengths span 2^0 … 2^4

void add_to_gradient(const at::Tensor& parameter, const at::Tensor& gradient) {
  at::Tensor& own = at::Tensor(parameter).mutable_grad();
  if (own.defined()) {
    own.add_(gradient);
  } else {
    own = gradient.clone();
  }
}

/// Returns 1 where a channel is present, 0 elsewhere.
at::Tensor present(const ParameterSlices& slices, int64_t channels) {
  return slices.along(at::ones({channels}, slices.parameter.options().requires_grad(false)));
}

}  // namespace

at::Tensor squared_norms(const ParameterGroup& group) {
  const at::NoGradGuard no_grad;
  at::Tensor sums =
      at::zeros({group.channels},
                group.slices.front().parameter.options().dtype(at::kDouble).requires_grad(false));
  for (const ParameterSlices& slices : group.slices) {
    slices.add_sums(slices.parameter.detach().square(), sums);
  }
  return sums;
}

Penalty::Penalty(const PenaltySettings& settings, std::vector<ParameterGroup> groups)
    : settings_(settings), groups_(std::move(groups)) {
  begin_epoch();
}

void Penalty::begin_epoch() {
  strength_.clear();
  if (settings_.group == 0) return;
  for (const ParameterGroup& group : groups_) {
    const at::Tensor norms = squared_norms(group);
    const at::Tensor most = norms.max();
    const at::Tensor range = (most - norms.min()).clamp_min(1e-30);
    strength_.push_back(at::exp2((most - norms) / range * kSpread));
  }
}

void Penalty::add_gradients() const {
  const at::NoGradGuard no_grad;
  for (size_t g = 0; g < groups_.size(); ++g) {
    for (const ParameterSlices& slices : groups_[g].slices) {
      const at::Tensor values = slices.parameter.detach();
      if (settings_.slimming > 0 && slices.scale) {
        const at::Tensor there = present(slices, groups_[g].channels);
        add_to_gradient(slices.parameter, values.sign() * there * settings_.slimming);
      }
      if (settings_.group > 0) {
        const at::Tensor strength = slices.along(strength_[g].to(values.scalar_type()));
        add_to_gradient(slices.parameter, values * strength * settings_.group);
      }
    }
  }
}

double Penalty::value() const {
  const at::NoGradGuard no_grad;
  double sum = 0;
  for (size_t g = 0; g < groups_.size(); ++g) {
    if (settings_.group > 0) {
      const at::Tensor weighted = strength_[g] * squared_norms(groups_[g]);
      sum += settings_.group / 2 * weighted.sum().item<double>();
    }
    for (const ParameterSlices& slices : groups_[g].slices) {
      if (settings_.slimming == 0 || !slices.scale) continue;
      const at::Tensor there = present(slices, groups_[g].channels);
      sum += settings_.slimming * (slices.parameter.detach().abs() * there).sum().item<double>();
    }
  }
  return sum;
}

namespace {

/// Sums along one axis of a tensor. [size of the axis]
at::Tensor line_of(const at::Tensor& values, int axis) {
  return values.to(at::kDouble).transpose(0, axis).flatten(1).sum(1).contiguous();
}

}  // namespace

Movement::Movement(TrainableModel& net) {
  for (const auto& [name, parameter] : net.parameters()) {
    sums_[name] = at::zeros_like(parameter.detach());
  }
}

void Movement::see(TrainableModel& net) {
  const at::NoGradGuard no_grad;
  for (const auto& [name, parameter] : net.parameters()) {
    const at::Tensor& gradient = parameter.grad();
    if (!gradient.defined()) continue;
    at::Tensor& sum = sums_.at(name);
    if (sum.device() != parameter.device()) sum = sum.to(parameter.device());
    sum.addcmul_(gradient, parameter.detach(), -1);
  }
}

Statistics Movement::statistics(const Graph& graph, const Coupling& coupling) const {
  Statistics statistics;
  auto& channels = statistics.channels[Measure::kMovement];
  for (const Group& group : coupling.groups) {
    statistics.groups.push_back(group.id);
    std::vector<double> scores;
    for (const Member& member : group.members) {
      const WeightId weight = graph.value(member.value).weight;
      if (weight == kNone || member.role != Role::kOut) continue;
      const auto found = sums_.find(graph.weight(weight).name);
      if (found == sums_.end() || found->second.dim() < 2) continue;
      const at::Tensor line = line_of(found->second.cpu(), member.axis);
      scores.resize(group.size);
      for (int c = 0; c < group.size; ++c) {
        for (const int64_t index : member.of(c)) {
          scores[c] += line.data_ptr<double>()[index];
        }
      }
    }
    channels.push_back(std::move(scores));
  }
  return statistics;
}

}  // namespace parsimony::training
