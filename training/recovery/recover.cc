#include "parsimony/training/recovery/recover.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "parsimony/api/recovery/recover.h"
#include "parsimony/base/ranges.h"
#include "parsimony/base/words.h"
#include "parsimony/engines/timing.h"
#include "parsimony/speedup/small_network.h"
#include "parsimony/training/errors.h"
#include "parsimony/training/loop/device.h"
#include "parsimony/training/loop/stage.h"
#include "parsimony/training/net/graph_net.h"
#include "parsimony/training/recovery/match_outputs.h"
#include "parsimony/training/recovery/output_error.h"
#include "parsimony/training/recovery/refit.h"
#include "parsimony/training/statistics/batches.h"

namespace parsimony::training {
namespace {

// So many values of samples run at once: 64 images of 3 x 32 x 32.
constexpr int64_t kBatchValues = 64 * 3 * 32 * 32;
constexpr int64_t kLargestBatch = 64;

class TorchRecovery final : public RecoveryEngine {
 public:
  /// The small network is what a plan makes of `original`.
  TorchRecovery(const Graph& dense, const Graph& original, const Calibration& data,
                const RecoverySettings& options, const Say& say)
      : dense_(dense),
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
    return data_.labelled ? data_.labelled->test.count() : data_.held_samples;
  }
  bool leads() const override { return data_.ranks == nullptr || data_.ranks->is_first(); }

  std::optional<double> dense_accuracy() override { return accuracy_of(dense_); }
  std::optional<double> dense_loss() override { return loss_of(SmallNetwork(dense_, Plan())); }

  /// On all data.
  RecoveryState state_of(const SmallNetwork& small) override {
    RecoveryState state{.error = output_error(dense_, small, data_.batches, batch_),
                        .accuracy = accuracy_of(small.graph()),
                        .loss = loss_of(small)};
    if (data_.held) state.test_error = output_error(dense_, small, data_.held, batch_);
    return state;
  }

  int carry_out(RecoveryMethod method, SmallNetwork& small, const std::vector<std::string>& fixed,
                RefitLog& log, std::vector<std::string>& notes) override {
    switch (method) {
      case RecoveryMethod::kBias:
        return refit(dense_, small, fixed, batches_,
                     {.weights = false, .batch = batch_of_fit(), .log = &log}, data_.ranks);
      case RecoveryMethod::kLeastSquares:
        return refit(dense_, small, fixed, batches_,
                     {.ridge = options_.ridge,
                      .rounds = options_.rounds,
                      .batch = batch_of_fit(),
                      .log = &log},
                     data_.ranks);
      case RecoveryMethod::kBatchNorm:
        return estimate_batch_norms(small, batches_, batch_, data_.ranks);
      case RecoveryMethod::kBlocks:
        return match_in_blocks(small, fixed, notes);
      case RecoveryMethod::kOutputs:
        return match(small, fixed, options_.outputs, notes);
      case RecoveryMethod::kFinetune:
        return data_.loss ? fit_targets(small, fixed, match_data(), data_.loss, options_.outputs)
                          : finetune(small, fixed);
    }
    return 0;
  }

 private:
  /// As many samples as run at once; what the file fixes wins.
  static int64_t batch_of(const Graph& graph, const Calibration& data, c10::Device device) {
    if (const int64_t fixed = fixed_batch(graph); fixed > 0) return fixed;
    if (device.is_cuda()) return batch_on_device(data.values);
    return std::clamp<int64_t>(kBatchValues / std::max<int64_t>(1, data.values), 1, kLargestBatch);
  }

  /// Of all ranks together what one alone would take, so that the same samples are held out.
  int64_t batch_of_fit() const {
    if (fixed_batch(dense_) > 0) return batch_;
    const int ranks = data_.ranks == nullptr ? 1 : data_.ranks->size();
    return std::max<int64_t>(1, fit_batch(data_.samples, batch_) / ranks);
  }

  /// So many samples of a training step.
  int64_t step_of() const {
    constexpr int64_t kLargestStep = 16;
    if (const int64_t fixed = fixed_batch(dense_); fixed > 0) return fixed;
    const int64_t fit = 4 * kBatchValues / std::max<int64_t>(1, data_.values);
    return std::clamp<int64_t>(fit, 1, kLargestStep);
  }

  std::optional<double> accuracy_of(const Graph& graph) const {
    return options_.accuracy && leads() && data_.labelled
               ? accuracy(graph, *data_.labelled, batch_, device_)
               : std::nullopt;
  }

  /// On samples that recovery does not see, where there are some.
  std::optional<double> loss_of(const SmallNetwork& network) const {
    if (!data_.loss || !leads()) return {};
    return mean_loss(network, data_.held ? data_.held : data_.batches, batch_, data_.loss);
  }

  MatchData match_data() const { return {batches_, step_of(), data_.ranks, say_}; }

  int match_in_blocks(SmallNetwork& small, const std::vector<std::string>& fixed,
                      std::vector<std::string>& notes) {
    const double begin = machine::steady_seconds();
    MatchSettings whole = options_.outputs;
    const int changed = match_blocks(dense_, small, fixed, match_data(), whole);
    if (whole.minutes > 0) {
      constexpr double kLeast = 1e-3;  // 0 would be without end
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
    const std::unique_ptr<Net> net = graph_net(small.graph());
    place(*net, device_, false);
    std::unique_ptr<Net> dense;
    if (options_.finetune.distill > 0) {
      dense = graph_net(dense_);
      place(*dense, device_, false);
      dense->train(false);
    }
    const TrainContext where{*data_.labelled, device_, false, dense.get(), data_.ranks};
    Stage stage(*net, where, options_.finetune);
    for (int epoch = 0; epoch < options_.finetune.epochs; ++epoch) {
      const EpochTimes times = stage.run(epoch);
      if (!say_) continue;
      say_("finetune: epoch " + std::to_string(epoch + 1) + " of " +
           std::to_string(options_.finetune.epochs) + ", loss " + formatted("%.4f", times.loss));
    }
    return take_over(small, all_tensors(*net), fixed, "fine-tuning");
  }

  const Graph& dense_;
  const Calibration& data_;
  const RecoverySettings& options_;
  const Say& say_;
  const Batches batches_;  ///< of this rank
  const c10::Device device_;
  const int64_t batch_;
};

void check_labels(const Calibration& data, const RecoverySettings& settings) {
  if (!data.labelled && !data.loss && contains(settings.steps, RecoveryMethod::kFinetune)) {
    throw ConfigError(
        "--recover finetune trains on a data set with classes that fills the network's only input; "
        "with other labels give --loss, for example --loss cross_entropy");
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
  check_labels(data, settings);
  const NoKernelTrials no_trials;
  TorchRecovery engine(original, original, data, settings, say);
  return parsimony::recover(engine, original, plan, settings, say);
}

Recovered recover_pruned(const Graph& dense, const Graph& small, const Calibration& data,
                         const RecoverySettings& settings, const Say& say) {
  check_labels(data, settings);
  const NoKernelTrials no_trials;
  TorchRecovery engine(dense, small, data, settings, say);
  return parsimony::recover(engine, small, Plan(), settings, say);
}

Recovery recovery(const Dataset& data, RecoverySettings settings, int64_t samples,
                  const RankGroup* ranks, c10::Device device, Say say) {
  return [&data, settings = std::move(settings), samples, ranks, device, say = std::move(say)](
             const Graph& original, const Plan& plan) {
    return recover(original, plan, data, settings, samples, ranks, device, say);
  };
}

}  // namespace parsimony::training
