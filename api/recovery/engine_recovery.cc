#include "parsimony/api/recovery/engine_recovery.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "parsimony/api/calibration_samples.h"
#include "parsimony/api/network_error.h"
#include "parsimony/api/output_metrics.h"
#include "parsimony/api/recovery/engine_refit.h"
#include "parsimony/api/recovery/recover.h"
#include "parsimony/configs/loss_spec.h"

namespace parsimony {
namespace {

constexpr int64_t kMostAtOnce = 64;

class EngineRecovery final : public RecoveryEngine {
 public:
  EngineRecovery(Engine& engine, const Graph& dense, const RecoverySettings& settings,
                 const CalibrationData& job)
      : engine_(engine), dense_(dense), settings_(settings), samples_(job, dense) {
    constexpr int64_t kBatchValues = 64 * 3 * 32 * 32;
    const int64_t fit = kBatchValues / std::max<int64_t>(1, samples_.values());
    batch_ = std::clamp<int64_t>(fit, 1, kMostAtOnce);
  }

  int64_t samples() const override { return samples_.count(); }
  int64_t test_samples() const override { return tests() > 0 ? tests() : samples_.held(); }
  std::optional<double> dense_accuracy() override { return accuracy_of(dense_part()); }

  RecoveryState state_of(const SmallNetwork& small) override {
    const std::unique_ptr<Part> found = part_on(engine_, small.graph());
    RecoveryState state{.error = error_of(*found, false), .accuracy = accuracy_of(*found)};
    if (!state.accuracy && samples_.held() > 0) state.test_error = error_of(*found, true);
    return state;
  }

  int carry_out(RecoveryMethod method, SmallNetwork& small, const std::vector<std::string>& fixed,
                RefitLog& log, std::vector<std::string>& /*notes*/) override {
    const bool fits = recovery_kind(method).fits_layers;
    const int64_t batch = samples_.batch(fits ? fit_batch(samples_.count(), batch_) : batch_);
    EngineRefit refitting(engine_, [this, batch] { return feed(batch); });
    switch (method) {
      case RecoveryMethod::kBias:
        return refit(refitting, dense_, small, fixed,
                     {.weights = false, .batch = batch, .log = &log});
      case RecoveryMethod::kLeastSquares:
        return refit(
            refitting, dense_, small, fixed,
            {.ridge = settings_.ridge, .rounds = settings_.rounds, .batch = batch, .log = &log});
      case RecoveryMethod::kBatchNorm:
        return estimate_batch_norms(refitting, small);
      case RecoveryMethod::kOutputs:
      case RecoveryMethod::kBlocks:
      case RecoveryMethod::kFinetune:
        break;  // not in closed form
    }
    return 0;
  }

 private:
  HeldFeed feed(int64_t batch) const {
    std::vector<std::pair<int64_t, int64_t>> runs;
    samples_.for_each(false, batch,
                      [&](int64_t first, int64_t count) { runs.emplace_back(first, count); });
    return [this, runs, next = size_t{0}]() mutable -> std::optional<HeldBatch> {
      if (next == runs.size()) return {};
      const auto [first, count] = runs[next++];
      return HeldBatch{held(samples_.data().inputs(first, count))};
    };
  }

  int64_t tests() const { return samples_.data().test_samples(); }

  Part& dense_part() {
    if (!dense_part_) dense_part_ = part_on(engine_, dense_);
    return *dense_part_;
  }

  /// Of the test part; nothing without one, or where the first output has no classes.
  std::optional<double> accuracy_of(Part& network) const {
    if (!settings_.accuracy || tests() == 0) return {};
    const SampleSource& data = samples_.data();
    const size_t axes = data.label_dims().size() + 1;
    const auto classes = std::ssize(data.dataset()->classes);
    double right = 0;
    int64_t all = 0;
    bool fits = true;
    samples_.for_each_test(batch_, [&](int64_t first, int64_t count) {
      if (!fits) return;
      Outputs outputs(1);
      for (const Held& output : network.run(held(data.inputs(first, count)))) {
        outputs.front().push_back(bytes_in(output));
      }
      fits = std::ranges::any_of(outputs.front(),
                                 [](const TensorBytes& x) { return is_floating(x.dtype); });
      if (!fits) return;
      const Answers answers = answers_of(outputs, outputs, "", data.labels(first, count));
      fits = answers.dims.size() == axes &&
             (axes > 2 ? answers.dims.front() : answers.dims.back()) >= classes;
      const int64_t labels =
          std::ssize(answers.labels) - std::ranges::count(answers.labels, kNoLabel);
      right += find_output_metric("accuracy")->value(answers) * static_cast<double>(labels);
      all += labels;
    });
    return fits && all > 0 ? std::optional(right / static_cast<double>(all)) : std::nullopt;
  }

  /// ‖found − dense‖ / ‖dense‖ over all outputs of all runs.
  double error_of(Part& found, bool of_held) {
    OutputError error;
    samples_.for_each(of_held, batch_, [&](int64_t first, int64_t count) {
      const std::vector<Held> inputs = held(samples_.data().inputs(first, count));
      const std::vector<Held> wanted = dense_part().run(inputs);
      const std::vector<Held> own = found.run(inputs);
      for (size_t o = 0; o < wanted.size(); ++o) error.add(bytes_in(own[o]), bytes_in(wanted[o]));
    });
    return error.relative();
  }

  Engine& engine_;
  const Graph& dense_;
  const RecoverySettings& settings_;
  const CalibrationSamples samples_;
  int64_t batch_ = 1;
  std::unique_ptr<Part> dense_part_;
};

}  // namespace

Recovered recover_on(Engine& engine, const Graph& original, const Plan& plan,
                     const RecoverySettings& settings, const CalibrationData& data,
                     const Say& say) {
  EngineRecovery recovery(engine, original, settings, data);
  return recover(recovery, original, plan, settings, say);
}

}  // namespace parsimony
