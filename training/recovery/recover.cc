#include "parsimony/training/recovery/recover.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <span>
#include <stdexcept>
#include <utility>

#include "parsimony/api/recovery/recover.h"
#include "parsimony/api/recovery/refit.h"
#include "parsimony/base/ranges.h"
#include "parsimony/base/words.h"
#include "parsimony/engines/timing.h"
#include "parsimony/speedup/small_network.h"
#include "parsimony/torch_io/executor/graph_module.h"
#include "parsimony/torch_io/network.h"
#include "parsimony/training/errors.h"
#include "parsimony/training/loop/device.h"
#include "parsimony/training/loop/labelled.h"
#include "parsimony/training/loop/target_loss.h"
#include "parsimony/training/net/graph_net.h"
#include "parsimony/training/recovery/ends.h"
#include "parsimony/training/recovery/match_outputs.h"
#include "parsimony/training/statistics/batches.h"

namespace parsimony::training {
namespace {

GraphModule runnable(const Graph& graph, c10::Device device) {
  GraphModule module(graph, GraphModuleOptions{.trainable = false});
  module->to(device);
  return module;
}

/// Returns the mean loss of a network, whose inputs may have lost channels, over the batches.
double mean_loss(const SmallNetwork& network, const Batches& batches, int64_t batch,
                 const Loss& loss) {
  const at::NoGradGuard no_grad;
  GraphModule module = runnable(network.graph(), device_of(batches));
  double sum = 0;
  int64_t count = 0;
  const BatchSource feed = small_feed(network, batches(batch));
  while (const std::optional<SampleBatch> some = feed()) {
    const at::Tensor of_batch = loss(module->forward(some->inputs), *some);
    sum += of_batch.item<double>() * static_cast<double>(some->count);
    count += some->count;
  }
  return sum / static_cast<double>(std::max<int64_t>(1, count));
}

/// Returns the accuracy of the first output [n, classes] on the test set, 0..1; empty for other
/// shapes. An incomplete last batch is left out if the network's batch size is fixed.
std::optional<double> accuracy(const Graph& graph, const Dataset& data, int64_t batch,
                               c10::Device device) {
  if (data.test.count() == 0) return {};
  const at::NoGradGuard no_grad;
  GraphModule module = runnable(graph, device);
  Loader loader(data.test, for_evaluation(with_scale_of(data, {.batch = batch, .device = device})));
  int64_t correct = 0;
  int64_t labelled = 0;
  const bool fixed = fixed_batch(graph) > 0;
  loader.start(0);
  while (const std::optional<Batch> some = loader.next()) {
    if (fixed && some->labels.size(0) < batch) break;
    const at::Tensor predictions = module->forward(some->inputs);
    const auto classes = static_cast<int64_t>(data.classes.size());
    const at::Tensor rows = class_rows(predictions, some->labels);
    if (!rows.defined() || rows.size(1) < classes) return {};
    correct += rows.argmax(1).eq(some->labels.flatten()).sum().item<int64_t>();
    labelled += some->labels.ne(kNoLabel).sum().item<int64_t>();
  }
  if (labelled == 0) return {};
  return static_cast<double>(correct) / static_cast<double>(labelled);
}

class TorchRecovery final : public RecoverySource {
 public:
  /// The plan turns `original` into the small network.
  TorchRecovery(const Graph& dense, const Graph& original, const Calibration& data,
                const RecoverySettings& options, const Say& say)
      : engine_(device_of(data.batches)),
        dense_(dense),
        data_(data),
        options_(options),
        say_(say),
        batches_(data.ranks == nullptr
                     ? data.batches
                     : share_of(data.batches, data.ranks->rank(), data.ranks->size())),
        device_(device_of(data.batches)),
        batch_(batch_of(original, data, device_)) {
    if (const std::optional<SampleBatch> first = data.batches(1)()) {
      check_dims(dense, first->inputs);
    }
  }

  int64_t samples() const override { return data_.samples; }
  int64_t test_samples() const override {
    return data_.labelled ? data_.labelled->test.count() : data_.held_out_samples;
  }
  bool leads() const override { return data_.ranks == nullptr || data_.ranks->is_first(); }

  bool has_held_out() const override { return data_.held_out != nullptr; }
  Engine& engine() override { return engine_; }

  ValueSource feed(Samples which, int64_t batch, const SmallNetwork* small) override {
    const Batches& batches = which == Samples::kOwn   ? batches_
                             : which == Samples::kAll ? data_.batches
                                                      : data_.held_out;
    BatchSource feed = batches(batch);
    return values_of(small != nullptr ? small_feed(*small, std::move(feed)) : std::move(feed));
  }

  int64_t batch() const override { return batch_; }
  /// Returns the samples per fit, the same in total for all ranks as for one, so that the same are
  /// held out.
  int64_t fit_batch() const override {
    if (fixed_batch(dense_) > 0) return batch_;
    const int ranks = data_.ranks == nullptr ? 1 : data_.ranks->size();
    return std::max<int64_t>(1, parsimony::fit_batch(data_.samples, batch_) / ranks);
  }
  Together together() const override {
    if (data_.ranks == nullptr) return {};
    return {data_.ranks->size(), [ranks = data_.ranks](std::span<double> numbers) {
              ranks->sum(at::from_blob(numbers.data(), {std::ssize(numbers)}, at::kDouble));
            }};
  }

  /// Empty for a network of which inputs are cut, too: the loader has whole ones.
  std::optional<double> accuracy_of(const SmallNetwork& network) override {
    const bool whole = std::ranges::none_of(network.ends(), &PlanEnd::input);
    return options_.accuracy && leads() && data_.labelled && whole
               ? accuracy(network.graph(), *data_.labelled, batch_, device_)
               : std::nullopt;
  }

  /// Uses samples that recovery does not see, if any.
  std::optional<double> loss_of(const SmallNetwork& network) override {
    if (!data_.loss || !leads()) return {};
    return mean_loss(network, data_.held_out ? data_.held_out : data_.batches, batch_, data_.loss);
  }

  int train(RecoveryMethod method, SmallNetwork& small, const std::vector<std::string>& fixed,
            std::vector<std::string>& notes) override {
    switch (method) {
      case RecoveryMethod::kBlocks:
        return match_in_blocks(small, fixed, notes);
      case RecoveryMethod::kOutputs:
        return match(small, fixed, options_.outputs, notes);
      case RecoveryMethod::kFinetune:
        return data_.loss ? fit_targets(small, fixed, match_data(), data_.loss, options_.outputs)
                          : finetune(small, fixed);
      case RecoveryMethod::kBias:
      case RecoveryMethod::kBatchNorm:
      case RecoveryMethod::kLeastSquares:
        break;
    }
    throw std::logic_error("a recovery method of closed form does not train");
  }

 private:
  /// Returns as many samples as run at once; a batch size fixed by the file takes precedence.
  static int64_t batch_of(const Graph& graph, const Calibration& data, c10::Device device) {
    if (const int64_t fixed = fixed_batch(graph); fixed > 0) return fixed;
    if (device.is_cuda()) return batch_that_fits(data.values);
    return recovery_batch(data.values);
  }

  /// Returns the samples of a training step.
  int64_t step_of() const {
    constexpr int64_t kLargestStep = 16;
    constexpr int64_t kStepValues = 256 * 3 * 32 * 32;
    if (const int64_t fixed = fixed_batch(dense_); fixed > 0) return fixed;
    const int64_t fit = kStepValues / std::max<int64_t>(1, data_.values);
    return std::clamp<int64_t>(fit, 1, kLargestStep);
  }

  MatchData match_data() const { return {batches_, step_of(), data_.ranks, say_}; }

  int match_in_blocks(SmallNetwork& small, const std::vector<std::string>& fixed,
                      std::vector<std::string>& notes) {
    const double begin = machine::steady_seconds();
    MatchSettings whole = options_.outputs;
    const int changed = match_blocks(dense_, small, fixed, match_data(), whole);
    if (whole.minutes > 0) {
      constexpr double kLeast = 1e-3;  // 0 would mean unlimited
      const double spent = (machine::steady_seconds() - begin) / 60;
      whole.minutes = std::max(kLeast, whole.minutes - spent);
    }
    return std::max(changed, match(small, fixed, whole, notes));
  }

  int match(SmallNetwork& small, const std::vector<std::string>& fixed,
            const MatchSettings& settings, std::vector<std::string>& notes) {
    const Matched matched = match_outputs(dense_, small, fixed, match_data(), settings);
    for (const std::string& note : matched.notes) {
      notes.push_back("--recover outputs: " + note);
    }
    return matched.tensors;
  }

  int finetune(SmallNetwork& small, const std::vector<std::string>& fixed) {
    if (options_.finetune.batch_norm) throw errors::norms_need_onnx("--recover finetune");
    at::manual_seed(options_.finetune.seed);
    const std::unique_ptr<TrainedModule> net = graph_net(small.graph());
    place(*net, device_, false);
    std::unique_ptr<TrainedModule> dense;
    if (options_.finetune.distill > 0) {
      dense = graph_net(dense_);
      place(*dense, device_, false);
      dense->train(false);
    }
    TrainContext where{*data_.labelled, device_, false, dense.get(), data_.ranks};
    if (!fixed.empty()) where.after_backward = keeping_zeros(net->parameters(), fixed);
    Trainer trainer(labelled_training(*net, where, options_.finetune));
    trainer.run(options_.finetune.epochs, [&](int64_t epoch, const EpochTimes& times) {
      if (say_) {
        say_("finetune: epoch " + std::to_string(epoch + 1) + " of " +
             std::to_string(options_.finetune.epochs) + ", loss " + formatted("%.4f", times.loss));
      }
      return false;
    });
    return assign_trained(small, all_tensors(*net), fixed, "fine-tuning");
  }

  torch_io::TorchEngine engine_;
  const Graph& dense_;
  const Calibration& data_;
  const RecoverySettings& options_;
  const Say& say_;
  const Batches batches_;  ///< of this rank
  const c10::Device device_;
  const int64_t batch_;
};

void check_finetune(const Calibration& data, const Plan& plan, const RecoverySettings& settings) {
  if (!contains(settings.steps, RecoveryMethod::kFinetune)) return;
  if (std::ranges::any_of(plan.ends, &PlanEnd::input)) {
    throw ConfigError("--recover finetune does not support networks of which inputs are pruned");
  }
  if (!data.labelled && !data.loss) {
    throw ConfigError(
        "--recover finetune requires a data set with classes and a network with one input; for "
        "other labels pass --loss, for example --loss cross_entropy");
  }
}

}  // namespace

Recovered recover(const Graph& original, const Plan& plan, const Dataset& data,
                  const RecoverySettings& settings, int64_t samples, const RankGroup* ranks,
                  c10::Device device, const Say& say) {
  const std::shared_ptr<const Dataset> borrowed(std::shared_ptr<const Dataset>(), &data);
  Calibration calibration = calibration_of(borrowed, samples);
  calibration.ranks = ranks;
  calibration.batches = on_device(std::move(calibration.batches), device);
  return recover(original, plan, calibration, settings, say);
}

Recovered recover(const Graph& original, const Plan& plan, const Calibration& data,
                  const RecoverySettings& settings, const Say& say) {
  check_finetune(data, plan, settings);
  const NoKernelTrials no_trials;
  TorchRecovery source(original, original, data, settings, say);
  return parsimony::recover(source, original, original, plan, settings, say);
}

Recovered recover_pruned(const Graph& dense, const Graph& small, const Calibration& data,
                         const RecoverySettings& settings, const Say& say) {
  check_finetune(data, Plan(), settings);
  const NoKernelTrials no_trials;
  TorchRecovery source(dense, small, data, settings, say);
  return parsimony::recover(source, dense, small, Plan(), settings, say);
}

Recovery recovery(const Dataset& data, RecoverySettings settings, int64_t samples,
                  const RankGroup* ranks, c10::Device device, Say say) {
  return [&data, settings = std::move(settings), samples, ranks, device, say = std::move(say)](
             const Graph& original, const Plan& plan) {
    return recover(original, plan, data, settings, samples, ranks, device, say);
  };
}

}  // namespace parsimony::training
