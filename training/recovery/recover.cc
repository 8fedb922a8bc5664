#include "parsimony/training/recovery/recover.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <string_view>

#include "parsimony/base/ranges.h"
#include "parsimony/engines/interleaved.h"
#include "parsimony/report/text.h"
#include "parsimony/speedup/fit_layers.h"
#include "parsimony/speedup/small_network.h"
#include "parsimony/torch_io/tensor.h"
#include "parsimony/training/errors.h"
#include "parsimony/training/loop/stage.h"
#include "parsimony/training/net/graph_net.h"
#include "parsimony/training/recovery/match_outputs.h"
#include "parsimony/training/recovery/output_error.h"
#include "parsimony/training/recovery/refit.h"
#include "parsimony/training/run/messages.h"
#include "parsimony/training/statistics/batches.h"

namespace parsimony::training {
namespace {

// So many values of samples run at once: 64 images of 3 x 32 x 32.
constexpr int64_t kBatchValues = 64 * 3 * 32 * 32;
constexpr int64_t kLargestBatch = 64;

class Recovering {
 public:
  /// The small network is what the plan makes of `original`.
  Recovering(const Graph& dense, const Graph& original, const Plan& plan, const Calibration& data,
             const RecoverySettings& options)
      : dense_(dense),
        small_(original, plan),
        data_(data),
        options_(options),
        batches_(data.ranks == nullptr
                     ? data.batches
                     : share_of(data.batches, data.ranks->rank(), data.ranks->size())),
        batch_(batch_of(original, data)) {
    if (const std::optional<SampleBatch> first = data.batches(1)()) {
      check_dims(dense, first->inputs);
    }
    for (const PlanZeros& zeros : plan.zeros) fixed_.push_back(zeros.tensor);
    for (const PlanMask& mask : plan.masks) {
      if (has_zeros(mask.tensor)) fixed_.push_back(mask.tensor);
    }
    report_.samples = data.samples;
    report_.test_samples = data.labelled ? data.labelled->test.count() : data.held_samples;
    report_.dense_accuracy = accuracy_of(dense_);
    report_.dense_loss = loss_of(SmallNetwork(dense_, Plan()));
    report_.before = evaluate("pruned");
  }

  Recovered result(const std::vector<RecoveryMethod>& steps) {
    for (const RecoveryMethod method : steps) step(method);
    return {small_.updates(), std::move(report_)};
  }

 private:
  void step(RecoveryMethod method) {
    const double begin = machine::steady_seconds();
    unfit_.clear();
    RecoveryStep step;
    step.method = method;
    step.layers = carry_out(method);
    step.seconds = machine::steady_seconds() - begin;
    const double before =
        report_.steps.empty() ? report_.before.error : report_.steps.back().after.error;
    step.after = evaluate(std::string(name_of(method)));
    report_.steps.push_back(step);
    if (step.after.error > before && method != RecoveryMethod::kFinetune) {
      report_.notes.push_back("--recover " + std::string(name_of(method)) +
                              " left the outputs further from the dense network's; without it, or "
                              "with outputs behind it, they may be closer");
    }
    if (method == RecoveryMethod::kLeastSquares || method == RecoveryMethod::kBias) {
      note_unfit(method);
    }
    if (step.layers > 0) return;
    report_.notes.push_back("--recover " + std::string(name_of(method)) + ": " +
                            reason_for_nothing(method));
  }

  bool has_zeros(const std::string& tensor) const {
    const auto weight = std::ranges::find(small_.graph().weights, tensor, &Weight::name);
    return weight != small_.graph().weights.end() &&
           torch_io::to_tensor(*weight).eq(0).any().item<bool>();
  }

  /// What the step leaves as it was, by reason.
  void note_unfit(RecoveryMethod method) {
    std::map<std::string_view, std::vector<std::string>> layers;
    std::vector<UnfitLayer> unfit = unfit_layers(small_.graph(), fixed_);
    unfit.insert(unfit.end(), unfit_.begin(), unfit_.end());
    for (const UnfitLayer& layer : unfit) {
      layers[layer.why].push_back(label_of(small_.graph(), small_.graph().node(layer.node)));
    }
    constexpr size_t kShown = 4;
    for (const auto& [why, names] : layers) {
      report_.notes.push_back("--recover " + std::string(name_of(method)) + " leaves " +
                              counted(std::ssize(names), "layer") + " as before (" +
                              std::string(why) + "): " + listed(names, kShown));
    }
  }

  static const char* reason_for_nothing(RecoveryMethod method) {
    switch (method) {
      case RecoveryMethod::kBatchNorm:
        return "the network has no BatchNormalization of its own";
      case RecoveryMethod::kBlocks:
      case RecoveryMethod::kOutputs:
        return "no epoch came closer to the dense network; a smaller --recover-lr, or more epochs "
               "or samples, may";
      default:
        return "there was nothing to change";
    }
  }

  bool leads() const { return data_.ranks == nullptr || data_.ranks->is_first(); }

  /// As many samples as run at once; what the file fixes wins.
  static int64_t batch_of(const Graph& graph, const Calibration& data) {
    if (const int64_t fixed = fixed_batch(graph); fixed > 0) return fixed;
    return std::clamp<int64_t>(kBatchValues / std::max<int64_t>(1, data.values), 1, kLargestBatch);
  }

  /// So many samples of a training step.
  int64_t step_of() const {
    constexpr int64_t kLargestStep = 16;
    if (const int64_t fixed = fixed_batch(dense_); fixed > 0) return fixed;
    const int64_t fit = 4 * kBatchValues / std::max<int64_t>(1, data_.values);
    return std::clamp<int64_t>(fit, 1, kLargestStep);
  }

  std::optional<double> accuracy_of(const Graph& graph) const {
    return options_.accuracy && leads() && data_.labelled ? accuracy(graph, *data_.labelled, batch_)
                                                          : std::nullopt;
  }

  /// On samples that recovery does not see, where there are some.
  std::optional<double> loss_of(const SmallNetwork& network) const {
    if (!data_.loss || !leads()) return {};
    return mean_loss(network, data_.held ? data_.held : data_.batches, batch_, data_.loss);
  }

  int carry_out(RecoveryMethod method) {
    switch (method) {
      case RecoveryMethod::kBias:
        return refit(dense_, small_, fixed_, batches_,
                     {.weights = false, .batch = batch_, .ranks = data_.ranks});
      case RecoveryMethod::kLeastSquares:
        return refit(dense_, small_, fixed_, batches_,
                     {.ridge = options_.ridge,
                      .rounds = options_.rounds,
                      .batch = batch_,
                      .ranks = data_.ranks,
                      .unfit = &unfit_});
      case RecoveryMethod::kBatchNorm:
        return estimate_batch_norms(small_, batches_, batch_, data_.ranks);
      case RecoveryMethod::kBlocks:
        return match_in_blocks();
      case RecoveryMethod::kOutputs:
        return match(options_.outputs);
      case RecoveryMethod::kFinetune:
        return data_.loss ? fit_targets(small_, fixed_, match_data(), data_.loss, options_.outputs)
                          : finetune();
    }
    return 0;
  }

  MatchData match_data() const { return {batches_, step_of(), data_.ranks, options_.say}; }

  int match_in_blocks() {
    const double begin = machine::steady_seconds();
    MatchSettings whole = options_.outputs;
    const int changed = match_blocks(dense_, small_, fixed_, match_data(), whole);
    if (whole.minutes > 0) {
      constexpr double kLeast = 1e-3;  // 0 would be without end
      const double spent = (machine::steady_seconds() - begin) / 60;
      whole.minutes = std::max(kLeast, whole.minutes - spent);
    }
    return std::max(changed, match(whole));
  }

  int match(const MatchSettings& settings) {
    const Matched matched = match_outputs(dense_, small_, fixed_, match_data(), settings);
    for (const std::string& note : matched.notes) {
      report_.notes.push_back("--recover outputs: " + note);
    }
    return matched.tensors;
  }

  int finetune() {
    if (options_.finetune.batch_norm) throw errors::norms_need_onnx("--recover finetune");
    at::manual_seed(options_.finetune.seed);
    const std::unique_ptr<Net> net = graph_net(small_.graph());
    std::unique_ptr<Net> dense;
    if (options_.finetune.distill > 0) {
      dense = graph_net(dense_);
      dense->train(false);
    }
    const TrainContext where{*data_.labelled, c10::Device(c10::kCPU), false, dense.get(),
                             data_.ranks};
    Stage stage(*net, where, options_.finetune);
    for (int epoch = 0; epoch < options_.finetune.epochs; ++epoch) {
      const EpochTimes times = stage.run(epoch);
      say("finetune: epoch " + std::to_string(epoch + 1) + " of " +
          std::to_string(options_.finetune.epochs) + ", loss " + number(times.loss));
    }
    return take_over(small_, all_tensors(*net), fixed_, "fine-tuning");
  }

  /// By rank 0, on all data.
  RecoveryState evaluate(const std::string& what) {
    if (!leads()) return {};
    RecoveryState state{.error = output_error(dense_, small_, data_.batches, batch_),
                        .accuracy = accuracy_of(small_.graph()),
                        .loss = loss_of(small_)};
    if (data_.held) state.test_error = output_error(dense_, small_, data_.held, batch_);
    std::string text = what + ": output error " + number(state.error);
    if (state.test_error) text += ", on test data " + number(*state.test_error);
    if (state.loss) text += ", loss " + number(*state.loss);
    if (state.accuracy) {
      char share[32];
      std::snprintf(share, sizeof share, ", accuracy %.2f %%", 100 * *state.accuracy);
      text += share;
    }
    say(text);
    return state;
  }

  void say(const std::string& line) const {
    if (options_.say) options_.say(line);
  }

  const Graph& dense_;
  SmallNetwork small_;
  const Calibration& data_;
  const RecoverySettings& options_;
  const Batches batches_;  ///< of this rank
  const int64_t batch_;
  std::vector<std::string> fixed_;
  std::vector<UnfitLayer> unfit_;  ///< in the last step, for want of samples
  RecoveryReport report_;
};

void check_labels(const Calibration& data, const RecoverySettings& settings) {
  if (!data.labelled && !data.loss && contains(settings.steps, RecoveryMethod::kFinetune)) {
    throw errors::needs_labels("--recover finetune");
  }
}

}  // namespace

Recovered recover(const Graph& original, const Plan& plan, const Dataset& data,
                  const RecoverySettings& settings, int64_t samples, const RankGroup* ranks) {
  const std::shared_ptr<const Dataset> borrowed(std::shared_ptr<const Dataset>(), &data);
  Calibration calibration = calibration_of(borrowed, samples);
  calibration.ranks = ranks;
  return recover(original, plan, calibration, settings);
}

Recovered recover(const Graph& original, const Plan& plan, const Calibration& data,
                  const RecoverySettings& settings) {
  check_labels(data, settings);
  return Recovering(original, original, plan, data, settings).result(settings.steps);
}

Recovered recover_pruned(const Graph& dense, const Graph& small, const Calibration& data,
                         const RecoverySettings& settings) {
  check_labels(data, settings);
  const Plan nothing;
  return Recovering(dense, small, nothing, data, settings).result(settings.steps);
}

Recovery recovery(const Dataset& data, RecoverySettings settings, int64_t samples,
                  const RankGroup* ranks) {
  return [&data, settings = std::move(settings), samples, ranks](const Graph& original,
                                                                 const Plan& plan) {
    return recover(original, plan, data, settings, samples, ranks);
  };
}

}  // namespace parsimony::training
