#include "parsimony/api/recovery/recover.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <optional>
#include <string_view>
#include <utility>

#include "parsimony/api/calibration_samples.h"
#include "parsimony/api/network_error.h"
#include "parsimony/api/output_metrics.h"
#include "parsimony/api/recovery/output_error.h"
#include "parsimony/api/recovery/refit.h"
#include "parsimony/api/reference.h"
#include "parsimony/api/taken_branches.h"
#include "parsimony/base/ranges.h"
#include "parsimony/base/words.h"
#include "parsimony/data/dataset.h"
#include "parsimony/engines/timing.h"

namespace parsimony {
namespace {

class Recovering {
 public:
  Recovering(RecoverySource& source, const Graph& dense, const Graph& original, const Plan& plan,
             const RecoverySettings& settings, const Say& say)
      : source_(source),
        dense_(dense),
        dense_part_(source.engine(), dense),
        original_(original),
        plan_(plan),
        settings_(settings),
        say_(say) {
    small_.emplace(original, plan);
    for (const PlanZeros& zeros : plan.zeros) fixed_.push_back(zeros.tensor);
    for (const PlanMask& mask : plan.masks) {
      if (has_zeros(mask.tensor)) fixed_.push_back(mask.tensor);
    }
    for (const TensorUpdate& update : plan.updates) {  // patterns and single elements
      if (plan.constants == Constants::kExact) break;  // they are masks, beside folded constants
      const bool matrix = !update.values.empty() && update.dims.size() > 1;
      if (matrix && has_zeros(update.tensor)) fixed_.push_back(update.tensor);
    }
    report_.samples = source.samples();
    report_.test_samples = source.test_samples();
    const SmallNetwork whole(dense, Plan());
    report_.dense_accuracy = source.accuracy_of(whole);
    report_.dense_loss = source.loss_of(whole);
    report_.before = evaluate("pruned");
  }

  Recovered result() {
    for (const RecoveryMethod method : settings_.steps) apply_step(method);
    return {small_->updates(), std::move(report_)};
  }

 private:
  void apply_step(RecoveryMethod method) {
    const double begin = machine::steady_seconds();
    RefitLog log;
    RecoveryStep step;
    step.method = method;
    const std::vector<TensorUpdate> values = small_->updates();
    step.layers = change(method, log);
    step.seconds = machine::steady_seconds() - begin;
    step.fits = std::move(log.fits);
    const RecoveryState before =
        report_.steps.empty() ? report_.before : report_.steps.back().after;
    step.after = evaluate(std::string(name_of(method)));
    const RecoveryKind& kind = recovery_kind(method);
    if (kind.fits_layers) note_unfit(method, log.unfit);
    if (step.layers == 0) note(method, ": " + std::string(reason_for_nothing(step)));
    // Who weighs outputs asks for something else than the smallest error of all.
    const bool weighs = !kind.closed_form && !settings_.outputs.terms.empty();
    if (kind.matches_outputs && !weighs && is_further(step.after, before)) {
      note(method, " was undone: it increased the output error" + increase(before, step.after));
      replace(values);
      step.layers = 0;
      step.after = before;
    }
    report_.steps.push_back(std::move(step));
  }

  /// Makes the values those of another time or network.
  void replace(const std::vector<TensorUpdate>& values) {
    small_.emplace(original_, plan_with(values));
  }

  Plan plan_with(const std::vector<TensorUpdate>& values) const {
    Plan plan = plan_;
    plan.updates = values;
    return plan;
  }

  /// Returns the state of the leading rank, by which all decide; the others do not evaluate.
  RecoveryState agreed(RecoveryState state) const {
    const Together together = source_.together();
    if (!together.sum) return state;
    const std::array parts = {&state.test_error, &state.accuracy, &state.loss};
    std::vector<double> numbers = {state.error};
    for (const auto* part : parts) {
      numbers.push_back(*part ? 1 : 0);
      numbers.push_back(part->value_or(0));
    }
    together.sum(numbers);
    state.error = numbers[0];
    for (size_t i = 0; i < parts.size(); ++i) {
      *parts[i] = numbers[2 * i + 1] > 0 ? std::optional(numbers[2 * i + 2]) : std::nullopt;
    }
    return state;
  }

  /// @returns how many layers, or tensors, changed
  int change(RecoveryMethod method, RefitLog& log) {
    if (!recovery_kind(method).closed_form) {
      return source_.train(method, *small_, fixed_, report_.notes);
    }
    if (!taken_) taken_ = branches_taken(source_.engine(), dense_, each_run());
    if (taken_->empty()) return fit(method, dense_, *small_, log);
    const Hoisted dense(dense_, *taken_);
    const Hoisted original(original_, *taken_);
    SmallNetwork small(original.graph(), plan_with(small_->updates()));
    const int changed = fit(method, dense.graph(), small, log);
    replace(small.updates());
    return changed;
  }

  /// All ranks see the same runs.
  EachRun each_run() const {
    return [this](const auto& see) {
      const ValueSource feed =
          source_.feed(RecoverySource::Samples::kAll, source_.batch(), nullptr);
      while (const std::optional<ValueBatch> batch = feed()) see(batch->inputs);
    };
  }

  int fit(RecoveryMethod method, const Graph& dense, SmallNetwork& small, RefitLog& log) const {
    const bool fits = recovery_kind(method).fits_layers;
    const int64_t batch = fits ? source_.fit_batch() : source_.batch();
    const RefitData data = {source_.engine(),
                            [&](bool of_small) {
                              return source_.feed(RecoverySource::Samples::kOwn, batch,
                                                  of_small ? &small : nullptr);
                            },
                            source_.together()};
    if (method == RecoveryMethod::kBatchNorm) return estimate_batch_norms(data, small);
    if (method == RecoveryMethod::kBias) {
      return refit(data, dense, small, {}, {.weights = false, .batch = batch, .log = &log});
    }
    return refit(
        data, dense, small, fixed_,
        {.ridge = settings_.ridge, .rounds = settings_.rounds, .batch = batch, .log = &log});
  }

  /// Compares errors, on held-out samples if there are any; better accuracy or loss makes up for
  /// more error.
  static bool is_further(const RecoveryState& now, const RecoveryState& before) {
    if (now.accuracy && before.accuracy && *now.accuracy > *before.accuracy) return false;
    if (now.loss && before.loss && *now.loss < *before.loss) return false;
    const bool held_out = now.test_error && before.test_error;
    const double error = held_out ? *now.test_error : now.error;
    const double known = held_out ? *before.test_error : before.error;
    // Outputs with infinities have no error that could be compared.
    return error > known || (std::isnan(error) && !std::isnan(known));
  }

  static std::string increase(const RecoveryState& before, const RecoveryState& after) {
    const bool held_out = before.test_error && after.test_error;
    return (held_out ? " on held-out samples" : "") +
           formatted(" from %.4f", held_out ? *before.test_error : before.error) +
           formatted(" to %.4f", held_out ? *after.test_error : after.error);
  }

  void note(RecoveryMethod method, const std::string& text) {
    report_.notes.push_back("--recover " + std::string(name_of(method)) + text);
  }

  bool has_zeros(const std::string& tensor) const {
    const auto& weights = small_->graph().weights;
    const auto weight = std::ranges::find(weights, tensor, &Weight::name);
    if (weight == weights.end()) return false;
    const HostTensor values = to_host(*weight);
    return contains(values.floats, 0.0) || contains(values.ints, int64_t{0});
  }

  /// Notes the layers that the step did not change, by reason.
  void note_unfit(RecoveryMethod method, const std::vector<UnfitLayer>& of_data) {
    const bool weights = method != RecoveryMethod::kBias;
    const Hoisted small(small_->graph(), taken_.value_or(std::vector<std::string>()));
    std::vector<UnfitLayer> unfit =
        unfit_layers(small.graph(), weights ? fixed_ : std::vector<std::string>());
    unfit.insert(unfit.end(), of_data.begin(), of_data.end());
    std::map<std::string_view, std::vector<std::string>> layers;
    for (const UnfitLayer& layer : unfit) {
      layers[layer.why].push_back(label_of(small_->graph(), small_->graph().node(layer.node)));
    }
    constexpr size_t kShown = 4;
    for (const auto& [why, names] : layers) {
      note(method, " leaves " + counted(std::ssize(names), "layer") + " unchanged (" +
                       std::string(why) + "): " + listed(names, kShown));
    }
  }

  static std::string_view reason_for_nothing(const RecoveryStep& step) {
    if (std::ranges::any_of(step.fits, &LayerRecovery::kept)) {
      return "no fit reduced the error on held-out samples; more samples may help";
    }
    return recovery_kind(step.method).reason_for_nothing;
  }

  RecoveryState evaluate(const std::string& what) {
    if (!source_.leads()) return agreed({});
    RecoveryState state{.error = error_on(RecoverySource::Samples::kAll),
                        .accuracy = source_.accuracy_of(*small_),
                        .loss = source_.loss_of(*small_)};
    if (!state.accuracy && source_.has_held_out())
      state.test_error = error_on(RecoverySource::Samples::kHeldOut);
    state = agreed(std::move(state));
    if (!say_) return state;
    std::string text = what + formatted(": output error %.4f", state.error);
    if (state.test_error) text += formatted(", on test data %.4f", *state.test_error);
    if (state.loss) text += formatted(", loss %.4f", *state.loss);
    if (state.accuracy) text += formatted(", accuracy %.2f %%", 100 * *state.accuracy);
    say_(text);
    return state;
  }

  double error_on(RecoverySource::Samples which) {
    return output_error(source_.engine(), dense_part_, *small_,
                        source_.feed(which, source_.batch(), nullptr),
                        source_.feed(which, source_.batch(), &*small_), known_[which]);
  }

  RecoverySource& source_;
  const Graph& dense_;
  Part dense_part_;
  const Graph& original_;
  const Plan& plan_;
  std::optional<SmallNetwork> small_;
  const RecoverySettings& settings_;
  const Say& say_;
  std::vector<std::string> fixed_;
  std::optional<std::vector<std::string>> taken_;  ///< branches, found before the first fit
  RecoveryReport report_;
  std::map<RecoverySource::Samples, KnownOutputs> known_;  ///< of the dense network
};

/// Calibration data in host memory.
class CalibrationSource final : public RecoverySource {
 public:
  CalibrationSource(Engine& engine, const Graph& dense, const Plan& plan,
                    const RecoverySettings& settings, const CalibrationData& data)
      : engine_(engine),
        cut_(dense, plan),
        accuracy_(settings.accuracy),
        samples_(data, dense),
        batch_(recovery_batch(samples_.values())) {}

  Engine& engine() override { return engine_; }
  int64_t samples() const override { return samples_.count(); }
  int64_t test_samples() const override { return tests() > 0 ? tests() : samples_.held_out(); }
  bool has_held_out() const override { return samples_.held_out() > 0; }
  int64_t batch() const override { return samples_.batch(batch_); }
  int64_t fit_batch() const override {
    return samples_.batch(parsimony::fit_batch(samples_.count(), batch_));
  }

  ValueSource feed(Samples which, int64_t batch, const SmallNetwork* small) override {
    std::vector<std::pair<int64_t, int64_t>> runs;
    samples_.for_each(which == Samples::kHeldOut, batch,
                      [&](int64_t first, int64_t count) { runs.emplace_back(first, count); });
    return [this, runs, small, next = size_t{0}]() mutable -> std::optional<ValueBatch> {
      if (next == runs.size()) return {};
      const auto [first, count] = runs[next++];
      TensorList inputs = samples_.data().inputs(first, count);
      return ValueBatch{host_values(small ? cut_.small_inputs(std::move(inputs)) : inputs)};
    };
  }

  std::optional<double> accuracy_of(const SmallNetwork& network) override {
    if (!accuracy_ || tests() == 0) return {};
    Part part(engine_, network.graph());
    const InputSlicer cut = slicer_of(network);
    const SampleSource& data = samples_.data();
    const size_t axes = data.label_dims().size() + 1;
    const auto classes = std::ssize(data.dataset()->classes);
    double right = 0;
    int64_t all = 0;
    bool fits = true;
    samples_.for_each_test(batch_, [&](int64_t first, int64_t count) {
      if (!fits) return;
      const Outputs outputs = {
          on_host(part.run(host_values(cut.small_inputs(data.inputs(first, count)))))};
      fits = std::ranges::any_of(outputs.front(),
                                 [](const TensorBytes& x) { return is_floating(x.dtype); });
      if (!fits) return;
      const Predictions predictions =
          predictions_of(outputs, outputs, "", data.labels(first, count));
      fits = predictions.dims.size() == axes &&
             (axes > 2 ? predictions.dims.front() : predictions.dims.back()) >= classes;
      const int64_t labels =
          std::ssize(predictions.labels) - std::ranges::count(predictions.labels, kNoLabel);
      right += find_output_metric("accuracy")->value(predictions) * static_cast<double>(labels);
      all += labels;
    });
    return fits && all > 0 ? std::optional(right / static_cast<double>(all)) : std::nullopt;
  }

 private:
  int64_t tests() const { return samples_.data().test_samples(); }

  Engine& engine_;
  const InputSlicer cut_;
  const bool accuracy_;
  const CalibrationSamples samples_;
  const int64_t batch_;
};

/// Samples of another process, which runs the networks. All of them calibrate.
class ProcessSource final : public RecoverySource {
 public:
  ProcessSource(ProcessEngine& process, const Graph& dense, const Plan& plan)
      : process_(process), cut_(dense, plan), batch_(recovery_batch(process.values())) {}

  Engine& engine() override { return process_; }
  int64_t samples() const override { return process_.samples(); }
  int64_t test_samples() const override { return 0; }
  bool has_held_out() const override { return false; }
  int64_t batch() const override { return process_.batch(batch_); }
  int64_t fit_batch() const override {
    return process_.batch(parsimony::fit_batch(samples(), batch_));
  }
  std::optional<double> accuracy_of(const SmallNetwork& /*network*/) override { return {}; }

  ValueSource feed(Samples /*which*/, int64_t batch, const SmallNetwork* small) override {
    const bool cuts = small != nullptr && std::ranges::any_of(small->ends(), &PlanEnd::input);
    return [this, cuts, runs = process_.runs(batch), next = size_t{0},
            first = int64_t{0}]() mutable -> std::optional<ValueBatch> {
      if (next == runs.size()) return {};
      const int64_t count = runs[next++];
      EngineValues inputs = process_.inputs(std::exchange(first, first + count), count);
      if (cuts) inputs = host_values(cut_.small_inputs(on_host(inputs)));
      return ValueBatch{std::move(inputs)};
    };
  }

 private:
  ProcessEngine& process_;
  const InputSlicer cut_;
  const int64_t batch_;
};

}  // namespace

int64_t recovery_batch(int64_t values) {
  constexpr int64_t kMostAtOnce = 64;
  constexpr int64_t kBatchValues = int64_t{8} * 3 * 224 * 224;
  return std::clamp<int64_t>(kBatchValues / std::max<int64_t>(1, values), 1, kMostAtOnce);
}

Recovered recover(RecoverySource& source, const Graph& dense, const Graph& original,
                  const Plan& plan, const RecoverySettings& settings, const Say& say) {
  return Recovering(source, dense, original, plan, settings, say).result();
}

Recovered recover_on(Engine& engine, const Graph& original, const Plan& plan,
                     const RecoverySettings& settings, const CalibrationData& data,
                     const Say& say) {
  CalibrationSource source(engine, original, plan, settings, data);
  return recover(source, original, original, plan, settings, say);
}

Recovered recover_on(ProcessEngine& process, const Graph& original, const Plan& plan,
                     const RecoverySettings& settings, const Say& say) {
  ProcessSource source(process, original, plan);
  return recover(source, original, original, plan, settings, say);
}

}  // namespace parsimony
