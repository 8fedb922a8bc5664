#include "parsimony/training/loop/labelled.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "parsimony/training/loop/device.h"
#include "parsimony/training/loop/optimizer.h"
#include "parsimony/training/loop/target_loss.h"

namespace parsimony::training {
namespace {

/// @source Hinton et al., Distilling the Knowledge in a Neural Network, 2015
at::Tensor distillation(const at::Tensor& logits, const at::Tensor& teacher, double temperature) {
  const at::Tensor predictions = at::log_softmax(logits / temperature, 1);
  const at::Tensor requested = at::log_softmax(teacher / temperature, 1);
  const auto n = static_cast<double>(logits.size(0));
  return at::kl_div(predictions, requested, at::Reduction::Sum, true) *
         (temperature * temperature / n);
}

/// Returns the outputs of a batch, one row per label.
at::Tensor rows_of(const std::vector<at::Tensor>& outputs, const at::Tensor& labels,
                   const TrainContext& context) {
  const auto classes = static_cast<int64_t>(context.data.classes.size());
  return class_rows(outputs.front(), labels, classes);
}

/// Returns cross-entropy, mixed with distillation if there is a teacher.
at::Tensor taught_loss(const std::vector<at::Tensor>& outputs, const StepPart& part,
                       const TrainContext& context, const TrainSettings& settings) {
  const at::Tensor logits = rows_of(outputs, part.labels, context);
  at::Tensor own = cross_entropy(logits, part.labels, settings.label_smoothing);
  if (context.teacher == nullptr || settings.distill == 0) return own;
  at::Tensor requested;
  {
    const at::NoGradGuard no_grad;
    requested = rows_of(context.teacher->outputs(part), part.labels, context);
  }
  const at::Tensor taught =
      distillation(logits.to(at::kFloat), requested.to(at::kFloat), settings.temperature);
  return own * (1 - settings.distill) + taught * settings.distill;
}

TrainSamples samples_of(const TrainContext& context, const TrainSettings& settings) {
  const auto loader =
      std::make_shared<Loader>(context.data.train, loader_options(context, settings));
  const auto begin = [loader](int64_t epoch) -> StepSource {
    loader->start(epoch);
    return [loader]() -> std::optional<StepBatch> {
      if (const std::optional<Batch> batch = loader->next()) return StepBatch(*batch);
      return {};
    };
  };
  return {begin, loader->batches(), settings.batch};
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

Training labelled_training(TrainedModule& module, const TrainContext& context,
                           const TrainSettings& settings) {
  TrainSamples samples = samples_of(context, settings);
  std::vector<at::Tensor> parameters;
  for (const auto& [name, tensor] : module.parameters()) parameters.push_back(tensor);
  return {.modules = {&module},
          .samples = samples,
          .objective =
              [&context, settings](const auto& outputs, const StepPart& part) {
                return taught_loss(outputs, part, context, settings);
              },
          .schedule = [settings, steps = settings.epochs * samples.steps](
                          const Position& at) { return learning_rate(settings, at.step, steps); },
          .optimizer = make_optimizer(std::move(parameters), settings),
          .device = context.device,
          .precision = settings.precision,
          .ranks = context.ranks,
          .trace = context.trace,
          .say = context.say,
          .after_backward = context.after_backward};
}

double loss_on(TrainedModule& module, const TrainContext& context, const TrainSettings& settings,
               int64_t samples) {
  const at::NoGradGuard no_grad;
  LoaderOptions options = for_evaluation(loader_options(context, settings));
  options.rank = 0;
  options.ranks = 1;
  Loader loader(context.data.train, options);
  module.train(false);
  double sum = 0;
  int64_t seen = 0;
  loader.start(0);
  while (seen < samples) {
    const std::optional<Batch> batch = loader.next();
    if (!batch) break;
    const at::Tensor logits = rows_of(module.outputs(*batch), batch->labels, context);
    const int64_t n = batch->labels.size(0);
    sum += cross_entropy(logits, batch->labels).item<double>() * static_cast<double>(n);
    seen += n;
  }
  return sum / static_cast<double>(std::max<int64_t>(1, seen));
}

LedgerPoint::Score score(TrainedModule& module, const TrainContext& context,
                         const TrainSettings& settings) {
  const at::NoGradGuard no_grad;
  constexpr int64_t kBatch = 256;
  LoaderOptions options = for_evaluation(loader_options(context, settings));
  options.batch = std::max<int64_t>(kBatch, settings.batch);
  Loader loader(context.data.test, options);
  module.train(false);
  const Autocast autocast(settings.precision, context.device);
  at::Tensor correct = at::zeros({}, at::TensorOptions(at::kLong).device(context.device));
  at::Tensor total = at::zeros_like(correct);
  at::Tensor loss = at::zeros({}, at::TensorOptions(at::kDouble).device(context.device));
  LedgerPoint::Score result;
  loader.start(0);
  while (const std::optional<Batch> batch = loader.next()) {
    if (batch->labels.size(0) == 0) continue;
    const at::Tensor logits = rows_of(module.outputs(*batch), batch->labels, context);
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
