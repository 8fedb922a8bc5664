#include "parsimony/training/loop/trainer.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <exception>
#include <span>
#include <utility>

#include "parsimony/torch_io/reason.h"
#include "parsimony/torch_io/side_by_side.h"
#include "parsimony/training/loop/optimizer.h"

namespace parsimony::training {
namespace {

std::vector<at::Tensor> tensors_of(const std::vector<NamedParameter>& named) {
  std::vector<at::Tensor> tensors;
  for (const auto& [name, tensor] : named) tensors.push_back(tensor);
  return tensors;
}

/// Calls `visit` with every tensor of the batch that a step reads.
template <typename Parts, typename Visit>
void for_each_tensor(Parts& parts, const Visit& visit) {
  for (auto& part : parts) {
    for (auto& input : part.inputs) visit(input);
    if (part.labels.defined()) visit(part.labels);
    for (auto& target : part.targets) {
      if (target.defined()) visit(target);
    }
  }
}

}  // namespace

StepBatch::StepBatch(const Batch& batch) : of_all(batch.of_all) {
  StepPart& part = parts.emplace_back(SampleBatch(batch), batch.index);
  part.weight = static_cast<double>(part.count);
}

double mean_of_ranks(const RankGroup* ranks, double sum, double count) {
  const at::Tensor both = at::tensor({sum, count}, at::kDouble);
  if (ranks != nullptr) ranks->sum(both);
  return both[0].item<double>() / std::max(1.0, both[1].item<double>());
}

Trainer::Trainer(Training training) : training_(std::move(training)), scaler_(training_.precision) {
  for (TrainedModule* module : training_.modules) {
    parameters_.push_back(tensors_of(module->parameters()));
  }
  if (training_.scales.empty()) fused_ = FusedStep::of(*training_.optimizer);
  const RankGroup* ranks = training_.ranks;
  if (ranks == nullptr || training_.one_core_each) return;
  ReplicasOptions options{.half = ranks->place().settings.half_gradients};
  if (training_.trace != nullptr) {
    options.seen = [trace = training_.trace](const Exchange& exchange) {
      trace->add("all-reduce", exchange.begin, exchange.end, 2);
    };
  }
  replicas_ = std::make_unique<Replicas>(*ranks, parameters_.front(),
                                         tensors_of(training_.modules.front()->buffers()), options);
}

torch::optim::Optimizer& Trainer::optimizer() {
  if (fused_) fused_->write_back_counts();
  return *training_.optimizer;
}

void Trainer::run(int64_t epochs, const Stop& stop) {
  for (int64_t number = 0; number < epochs; ++number) {
    if (stop(number, epoch(number))) return;
  }
}

EpochTimes Trainer::epoch(int64_t number) {
  epoch_ = number;
  for (TrainedModule* module : training_.modules) module->train(true);
  std::optional<StepStream> stream;
  if (!training_.one_core_each) stream.emplace(training_.device);
  PhaseWatch watch(training_.trace);
  at::Tensor sum = at::zeros({}, at::TensorOptions(at::kDouble).device(training_.device));
  double weights = 0;
  int64_t samples = 0;
  const StepSource feed = training_.samples.begin(number);
  while (true) {
    const std::optional<StepBatch> batch = feed();
    watch.charge(&Phases::wait, "wait");
    if (!batch) break;
    const std::vector<at::Tensor> losses = step(*batch, watch);
    if (losses.empty()) break;
    for (size_t p = 0; p < losses.size(); ++p) {
      const StepPart& part = batch->parts[p];
      sum.add_(losses[p], part.weight);
      weights += part.weight;
      samples += part.count;
    }
    watch.charge(&Phases::rest, "rest");
  }
  const double mean = mean_of_ranks(training_.ranks, sum.item<double>(), weights);
  if (replicas_) replicas_->share_buffers();
  watch.charge(&Phases::rest, "rest");
  return {watch.phases(), mean, samples, replicas_ ? replicas_->sent().bytes : 0};
}

std::vector<at::Tensor> Trainer::step(const StepBatch& batch, PhaseWatch& watch) {
  const std::optional<double> rate = training_.schedule({step_, epoch_, batch.parts.front().index});
  if (!rate) return {};
  set_learning_rate(*training_.optimizer, *rate, training_.scales);
  if (fused_) fused_->set_rate(*rate);
  if (records() && !recorded_ && batch.parts.front().count == training_.samples.batch) {
    record(batch);
  }
  std::vector<at::Tensor> losses;
  if (replays(batch)) {
    std::vector<at::Tensor> given;
    for_each_tensor(batch.parts, [&](const at::Tensor& tensor) { given.push_back(tensor); });
    size_t next = 0;
    for_each_tensor(recorded_->batch.parts,
                    [&](at::Tensor& tensor) { tensor.copy_(given[next++]); });
    recorded_->graph->replay();
    losses = recorded_->losses;
    watch.charge(&Phases::forward, "step");
  } else {
    losses = compute(batch, watch);
    ++launched_;
  }
  ++step_;
  return losses;
}

/// The first steps are not recorded: they choose kernels and create momenta.
bool Trainer::records() const {
  constexpr int64_t kFirst = 3;
  return launched_ >= kFirst && StepGraph::can_record(training_.device) && fused_ && !replicas_ &&
         !training_.after_backward;
}

bool Trainer::replays(const StepBatch& batch) const {
  return recorded_ && recorded_->graph &&
         batch.parts.front().count == recorded_->batch.parts.front().count;
}

void Trainer::record(const StepBatch& batch) {
  Recorded& recorded = recorded_.emplace();
  recorded.batch = batch;
  for_each_tensor(recorded.batch.parts, [](at::Tensor& tensor) { tensor = tensor.clone(); });
  PhaseWatch unwatched(nullptr);
  try {
    recorded.graph =
        std::make_unique<StepGraph>([&] { recorded.losses = compute(recorded.batch, unwatched); });
  } catch (const std::exception& error) {  // libtorch has several kinds
    if (!training_.say) return;
    training_.say("steps cannot be recorded as a CUDA graph and are launched kernel by kernel: " +
                  torch_io::reason_of(error));
  }
}

std::vector<at::Tensor> Trainer::compute(const StepBatch& batch, PhaseWatch& watch) {
  const at::AutoGradMode gradients(true);
  std::vector<at::Tensor> losses =
      training_.one_core_each ? differentiate_side_by_side(batch) : differentiate(batch, watch);
  if (losses.empty()) return {};
  const at::Tensor overflow = scaler_.unscale(parameters_.front());
  // Fused steps skip by themselves; otherwise, and for hooks, the host checks.
  const bool asks = overflow.defined() && (!fused_ || training_.after_backward);
  const bool skipped = asks && overflow.item<float>() != 0;
  if (!skipped) {
    if (training_.after_backward) training_.after_backward();
    if (fused_) {
      fused_->step(overflow);
    } else {
      training_.optimizer->step();
    }
  }
  for (at::Tensor& parameter : parameters_.front()) parameter.mutable_grad().reset();
  watch.charge(&Phases::optimizer, "optimizer");
  for (at::Tensor& loss : losses) loss = loss.detach();
  return losses;
}

at::Tensor Trainer::loss(size_t module, const StepPart& part) {
  const Autocast autocast(training_.precision, training_.device);
  return training_.objective(training_.modules[module]->outputs(part), part);
}

/// Computes one part, exchanging gradients with other ranks as they become ready.
std::vector<at::Tensor> Trainer::differentiate(const StepBatch& batch, PhaseWatch& watch) {
  const torch_io::SyncBatchNorm synced(sum_of_norms(batch));
  const StepPart& part = batch.parts.front();
  const at::Tensor of_part =
      part.count > 0 ? loss(0, part) : at::zeros({}, at::TensorOptions(training_.device));
  watch.charge(&Phases::forward, "forward");
  if (replicas_) {
    replicas_->backward(scaler_.scaled(of_part), part.count, batch.of_all);
    watch.charge(&Phases::backward, "backward", replicas_->sent().ready);
    watch.charge(&Phases::exchange, "exchange");
  } else {
    scaler_.scaled(of_part).backward();
    watch.charge(&Phases::backward, "backward");
  }
  return {of_part};
}

/// Norms that a file does not have are initialised by the first batch's statistics, of all ranks.
torch_io::SyncBatchNorm::Sum Trainer::sum_of_norms(const StepBatch& batch) const {
  const RankGroup* ranks = training_.ranks;
  const bool synced = ranks != nullptr && (step_ == 0 || !ranks->place().settings.local_norms) &&
                      batch.of_all >= ranks->size();  // each has samples
  if (!synced) return {};
  return [ranks](const at::Tensor& x) { ranks->sum(x); };
}

std::vector<at::Tensor> Trainer::losses(const std::vector<StepPart>& parts) {
  int64_t samples = 0;
  for (const StepPart& part : parts) samples += part.count;
  std::vector<at::Tensor> losses(parts.size());
  torch_io::side_by_side(std::ssize(parts), training_.device, [&](int64_t p) {
    losses[p] = loss(p, parts[p]);
    if (!losses[p].defined() || !losses[p].requires_grad()) return;
    const double share = static_cast<double>(parts[p].count) / static_cast<double>(samples);
    (losses[p] * share).backward();
  });
  return losses;
}

std::vector<at::Tensor> Trainer::differentiate_side_by_side(const StepBatch& batch) {
  std::vector<at::Tensor> of_parts = losses(batch.parts);
  const auto learns = [](const at::Tensor& loss) { return loss.defined() && loss.requires_grad(); };
  if (!std::ranges::all_of(of_parts, learns)) return {};
  sum_gradients();
  if (training_.ranks != nullptr) average_gradients();
  return of_parts;
}

void Trainer::sum_gradients() {
  for (std::vector<at::Tensor>& others : std::span(parameters_).subspan(1)) {
    for (size_t p = 0; p < others.size(); ++p) {
      at::Tensor& gradient = parameters_.front()[p].mutable_grad();
      at::Tensor& other = others[p].mutable_grad();
      if (!other.defined()) continue;
      gradient = gradient.defined() ? gradient.add_(other) : other;
      other.reset();
    }
  }
}

void Trainer::average_gradients() {
  std::vector<at::Tensor> gradients;
  for (const at::Tensor& parameter : parameters_.front()) {
    if (parameter.grad().defined()) gradients.push_back(parameter.grad());
  }
  const at::Tensor all = at::flatten_dense_tensors(gradients);
  training_.ranks->sum(all.div_(training_.ranks->size()));
  const std::vector<at::Tensor> means = at::unflatten_dense_tensors(all, gradients);
  for (size_t i = 0; i < means.size(); ++i) gradients[i].copy_(means[i]);
}

}  // namespace parsimony::training
