#include "parsimony/training/loop/stage.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <cmath>

#include "parsimony/base/errors.h"
#include "parsimony/torch_io/reason.h"
#include "parsimony/training/loop/device.h"
#include "parsimony/training/loop/optimizer.h"
#include "parsimony/training/loop/target_loss.h"

namespace parsimony::training {
namespace {

std::vector<at::Tensor> tensors_of(const std::vector<NamedParameter>& named) {
  std::vector<at::Tensor> tensors;
  for (const auto& [name, tensor] : named) tensors.push_back(tensor);
  return tensors;
}

/// @source Hinton et al., Distilling the Knowledge in a Neural Network, 2015
at::Tensor distillation(const at::Tensor& logits, const at::Tensor& teacher, double temperature) {
  const at::Tensor answers = at::log_softmax(logits / temperature, 1);
  const at::Tensor wanted = at::log_softmax(teacher / temperature, 1);
  const auto n = static_cast<double>(logits.size(0));
  return at::kl_div(answers, wanted, at::Reduction::Sum, true) * (temperature * temperature / n);
}

int64_t classes_of(const TrainContext& context) {
  return static_cast<int64_t>(context.data.classes.size());
}

}  // namespace

LoaderOptions loader_options(const TrainContext& context, const TrainSettings& settings) {
  LoaderOptions options;
  options.batch = settings.batch;
  options.seed = settings.seed;
  options.augmentation = {settings.flip, settings.crop, settings.cutout};
  options.device = context.device;
  options.channels_last = context.channels_last;
  if (context.ranks != nullptr) {
    options.rank = context.ranks->rank();
    options.ranks = context.ranks->size();
  }
  const auto bytes = [](const Samples& samples) { return samples.count() * samples.stride(); };
  options.resident = holds(context.device, bytes(context.data.train) + bytes(context.data.test));
  return with_scale_of(context.data, options);
}

Stage::Stage(Net& net, const TrainContext& context, const TrainSettings& settings)
    : net_(net),
      context_(context),
      settings_(settings),
      loader_(context.data.train, loader_options(context, settings)),
      parameters_(tensors_of(net.parameters())),
      optimizer_(make_optimizer(parameters_, settings)),
      scaler_(settings.precision),
      fused_(FusedStep::of(*optimizer_)) {
  if (context.ranks == nullptr) return;
  ReplicasOptions options{.half = context.ranks->place().settings.half_gradients};
  if (context.trace != nullptr) {
    options.seen = [trace = context.trace](const Exchange& exchange) {
      trace->add("all-reduce", exchange.begin, exchange.end, 2);
    };
  }
  replicas_ =
      std::make_unique<Replicas>(*context.ranks, parameters_, tensors_of(net.buffers()), options);
}

at::Tensor Stage::loss(const Batch& batch) {
  const Autocast autocast(settings_.precision, context_.device);
  const at::Tensor logits =
      class_rows(net_.forward(batch.inputs), batch.labels, classes_of(context_));
  at::Tensor own = cross_entropy(logits, batch.labels, settings_.label_smoothing);
  if (context_.teacher == nullptr || settings_.distill == 0) return own;
  at::Tensor wanted;
  {
    const at::NoGradGuard no_grad;
    wanted =
        class_rows(context_.teacher->forward(batch.inputs), batch.labels, classes_of(context_));
  }
  const at::Tensor taught =
      distillation(logits.to(at::kFloat), wanted.to(at::kFloat), settings_.temperature);
  return own * (1 - settings_.distill) + taught * settings_.distill;
}

/// Norms that a file lacks begin with the first batch's statistics, which must be the same for all.
torch_io::SyncBatchNorm::Sum Stage::sum_of_norms(const Batch& batch) const {
  const RankGroup* ranks = context_.ranks;
  const bool synced = ranks != nullptr && (step_ == 0 || !ranks->place().settings.local_norms) &&
                      batch.of_all >= ranks->size();  // each has samples
  if (!synced) return {};
  return [ranks](const at::Tensor& x) { ranks->sum(x); };
}

at::Tensor Stage::step(const Batch& batch, PhaseWatch& watch) {
  const double rate = learning_rate(settings_, step_, settings_.epochs * loader_.batches());
  set_learning_rate(*optimizer_, rate);
  if (fused_) fused_->set_rate(rate);
  if (records() && !recorded_ && batch.labels.size(0) == settings_.batch) record(batch);
  const bool replays =
      recorded_ && recorded_->graph && batch.labels.sizes() == recorded_->batch.labels.sizes();
  at::Tensor loss;
  if (replays) {
    recorded_->batch.inputs.copy_(batch.inputs);
    recorded_->batch.labels.copy_(batch.labels);
    recorded_->graph->replay();
    loss = recorded_->loss;
    watch.charge(&Phases::forward, "step");
  } else {
    loss = compute(batch, watch);
    ++launched_;
  }
  ++step_;
  return loss;
}

/// The first steps are done as they come: kernels are chosen in them, and momenta made.
bool Stage::records() const {
  constexpr int64_t kFirst = 3;
  return launched_ >= kFirst && StepGraph::can_record(context_.device) && fused_ && !replicas_ &&
         !context_.after_backward;
}

void Stage::record(const Batch& batch) {
  Recorded& recorded = recorded_.emplace();
  recorded.batch = {batch.inputs.clone(), batch.labels.clone(), batch.index, batch.of_all};
  PhaseWatch unwatched(nullptr);
  try {
    recorded.graph =
        std::make_unique<StepGraph>([&] { recorded.loss = compute(recorded.batch, unwatched); });
  } catch (const std::exception& error) {  // libtorch has several kinds
    if (!context_.say) return;
    context_.say("a step cannot be recorded as one CUDA graph, and is launched kernel by kernel: " +
                 torch_io::reason_of(error));
  }
}

at::Tensor Stage::compute(const Batch& batch, PhaseWatch& watch) {
  const at::AutoGradMode gradients(true);
  const torch_io::SyncBatchNorm synced(sum_of_norms(batch));
  const int64_t samples = batch.labels.size(0);
  const at::Tensor of_batch =
      samples > 0 ? loss(batch) : at::zeros({}, at::TensorOptions(context_.device));
  watch.charge(&Phases::forward, "forward");
  if (replicas_) {
    replicas_->backward(scaler_.scaled(of_batch), samples, batch.of_all);
    watch.charge(&Phases::backward, "backward", replicas_->sent().ready);
    watch.charge(&Phases::exchange, "exchange");
  } else {
    scaler_.scaled(of_batch).backward();
    watch.charge(&Phases::backward, "backward");
  }
  const at::Tensor overflow = scaler_.unscale(parameters_);
  // Fused steps skip by themselves; the host asks for the others, and for hooks.
  const bool asks = overflow.defined() && (!fused_ || context_.after_backward);
  const bool skipped = asks && overflow.item<float>() != 0;
  if (!skipped) {
    if (context_.after_backward) context_.after_backward();
    if (fused_) {
      fused_->step(overflow);
    } else {
      optimizer_->step();
    }
  }
  for (at::Tensor& parameter : parameters_) parameter.mutable_grad().reset();
  watch.charge(&Phases::optimizer, "optimizer");
  return of_batch.detach();
}

/// Of the losses' sum over the samples.
double Stage::mean_of_ranks(const at::Tensor& sum, int64_t samples) const {
  const at::Tensor both =
      at::stack({sum.cpu(), at::full({}, static_cast<double>(samples), at::kDouble)});
  if (context_.ranks != nullptr) context_.ranks->sum(both);
  return both[0].item<double>() / std::max(1.0, both[1].item<double>());
}

EpochTimes Stage::run(int64_t shuffle) {
  net_.train(true);
  const StepStream stream(context_.device);
  PhaseWatch watch(context_.trace);
  at::Tensor sum = at::zeros({}, at::TensorOptions(at::kDouble).device(context_.device));
  int64_t samples = 0;
  loader_.start(shuffle);
  while (true) {
    const std::optional<Batch> batch = loader_.next();
    watch.charge(&Phases::wait, "wait");
    if (!batch) break;
    const at::Tensor of_batch = step(*batch, watch);
    const int64_t n = batch->labels.size(0);
    sum.add_(of_batch, static_cast<double>(n));
    samples += n;
    watch.charge(&Phases::rest, "rest");
  }
  const double mean = mean_of_ranks(sum, samples);
  if (replicas_) replicas_->share_buffers();
  watch.charge(&Phases::rest, "rest");
  return {watch.phases(), mean, samples, replicas_ ? replicas_->sent().bytes : 0};
}

double loss_on(Net& net, const TrainContext& context, const TrainSettings& settings,
               int64_t samples) {
  const at::NoGradGuard no_grad;
  LoaderOptions options = for_evaluation(loader_options(context, settings));
  options.rank = 0;
  options.ranks = 1;
  Loader loader(context.data.train, options);
  net.train(false);
  double sum = 0;
  int64_t seen = 0;
  loader.start(0);
  while (seen < samples) {
    const std::optional<Batch> batch = loader.next();
    if (!batch) break;
    const at::Tensor logits =
        class_rows(net.forward(batch->inputs), batch->labels, classes_of(context));
    const int64_t n = batch->labels.size(0);
    sum += cross_entropy(logits, batch->labels).item<double>() * static_cast<double>(n);
    seen += n;
  }
  return sum / static_cast<double>(std::max<int64_t>(1, seen));
}

LedgerPoint::Score score(Net& net, const TrainContext& context, const TrainSettings& settings) {
  const at::NoGradGuard no_grad;
  constexpr int64_t kBatch = 256;
  LoaderOptions options = for_evaluation(loader_options(context, settings));
  options.batch = std::max<int64_t>(kBatch, settings.batch);
  Loader loader(context.data.test, options);
  net.train(false);
  const Autocast autocast(settings.precision, context.device);
  at::Tensor correct = at::zeros({}, at::TensorOptions(at::kLong).device(context.device));
  at::Tensor total = at::zeros_like(correct);
  at::Tensor loss = at::zeros({}, at::TensorOptions(at::kDouble).device(context.device));
  LedgerPoint::Score result;
  loader.start(0);
  while (const std::optional<Batch> batch = loader.next()) {
    if (batch->labels.size(0) == 0) continue;
    const at::Tensor logits =
        class_rows(net.forward(batch->inputs), batch->labels, classes_of(context));
    correct += logits.argmax(1).eq(batch->labels.flatten()).sum();
    const at::Tensor counted = batch->labels.ne(kNoLabel).sum();
    total += counted;
    if (context.data.tokens) loss.add_(cross_entropy(logits, batch->labels) * counted);
  }
  if (context.ranks != nullptr) {
    const at::Tensor sums =
        at::stack({correct.to(at::kDouble), total.to(at::kDouble), loss.to(at::kDouble)}).cpu();
    context.ranks->sum(sums);
    correct = sums[0].to(at::kLong);
    total = sums[1].to(at::kLong);
    loss = sums[2];
  }
  result.correct = correct.item<int64_t>();
  result.total = total.item<int64_t>();
  if (context.data.tokens) {
    result.perplexity = std::exp(loss.item<double>() / static_cast<double>(result.total));
  }
  return result;
}

}  // namespace parsimony::training
