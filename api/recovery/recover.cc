#include "parsimony/api/recovery/recover.h"

#include <algorithm>
#include <map>
#include <string_view>
#include <utility>

#include "parsimony/base/ranges.h"
#include "parsimony/base/words.h"
#include "parsimony/engines/timing.h"

namespace parsimony {
namespace {

class Recovering {
 public:
  Recovering(RecoveryEngine& engine, const Graph& original, const Plan& plan,
             const RecoverySettings& settings, const Say& say)
      : engine_(engine), small_(original, plan), settings_(settings), say_(say) {
    for (const PlanZeros& zeros : plan.zeros) fixed_.push_back(zeros.tensor);
    for (const PlanMask& mask : plan.masks) {
      if (has_zeros(mask.tensor)) fixed_.push_back(mask.tensor);
    }
    report_.samples = engine.samples();
    report_.test_samples = engine.test_samples();
    report_.dense_accuracy = engine.dense_accuracy();
    report_.dense_loss = engine.dense_loss();
    report_.before = evaluate("pruned");
  }

  Recovered result() {
    for (const RecoveryMethod method : settings_.steps) carry_out(method);
    return {small_.updates(), std::move(report_)};
  }

 private:
  void carry_out(RecoveryMethod method) {
    const double begin = machine::steady_seconds();
    RefitLog log;
    RecoveryStep step;
    step.method = method;
    step.layers = engine_.carry_out(method, small_, fixed_, log, report_.notes);
    step.seconds = machine::steady_seconds() - begin;
    step.fits = std::move(log.fits);
    const RecoveryState before =
        report_.steps.empty() ? report_.before : report_.steps.back().after;
    step.after = evaluate(std::string(name_of(method)));
    const RecoveryKind& kind = recovery_kind(method);
    if (is_further(step.after, before) && kind.matches_outputs) {
      note(method,
           " left the outputs further from the dense network's; without it, or with "
           "outputs behind it, they may be closer");
    }
    if (kind.fits_layers) note_unfit(method, std::move(log.unfit));
    if (step.layers == 0) note(method, ": " + std::string(reason_for_nothing(step)));
    report_.steps.push_back(std::move(step));
  }

  /// Samples that recovery does not see count where there are some.
  static bool is_further(const RecoveryState& now, const RecoveryState& before) {
    if (now.test_error && before.test_error) return *now.test_error > *before.test_error;
    return now.error > before.error;
  }

  void note(RecoveryMethod method, const std::string& text) {
    report_.notes.push_back("--recover " + std::string(name_of(method)) + text);
  }

  bool has_zeros(const std::string& tensor) const {
    const auto& weights = small_.graph().weights;
    const auto weight = std::ranges::find(weights, tensor, &Weight::name);
    if (weight == weights.end()) return false;
    const HostTensor values = to_host(*weight);
    return contains(values.floats, 0.0) || contains(values.ints, int64_t{0});
  }

  /// What the step leaves as it was, by reason.
  void note_unfit(RecoveryMethod method, std::vector<UnfitLayer> of_engine) {
    std::vector<UnfitLayer> unfit = unfit_layers(small_.graph(), fixed_);
    unfit.insert(unfit.end(), of_engine.begin(), of_engine.end());
    std::map<std::string_view, std::vector<std::string>> layers;
    for (const UnfitLayer& layer : unfit) {
      layers[layer.why].push_back(label_of(small_.graph(), small_.graph().node(layer.node)));
    }
    constexpr size_t kShown = 4;
    for (const auto& [why, names] : layers) {
      note(method, " leaves " + counted(std::ssize(names), "layer") + " as before (" +
                       std::string(why) + "): " + listed(names, kShown));
    }
  }

  static std::string_view reason_for_nothing(const RecoveryStep& step) {
    if (std::ranges::any_of(step.fits, &LayerRecovery::kept)) {
      return "no fit came closer on samples that it had not seen; more samples may help";
    }
    return recovery_kind(step.method).reason_for_nothing;
  }

  RecoveryState evaluate(const std::string& what) {
    if (!engine_.leads()) return {};
    const RecoveryState state = engine_.state_of(small_);
    if (!say_) return state;
    std::string text = what + formatted(": output error %.4f", state.error);
    if (state.test_error) text += formatted(", on test data %.4f", *state.test_error);
    if (state.loss) text += formatted(", loss %.4f", *state.loss);
    if (state.accuracy) text += formatted(", accuracy %.2f %%", 100 * *state.accuracy);
    say_(text);
    return state;
  }

  RecoveryEngine& engine_;
  SmallNetwork small_;
  const RecoverySettings& settings_;
  const Say& say_;
  std::vector<std::string> fixed_;
  RecoveryReport report_;
};

}  // namespace

Recovered recover(RecoveryEngine& engine, const Graph& original, const Plan& plan,
                  const RecoverySettings& settings, const Say& say) {
  return Recovering(engine, original, plan, settings, say).result();
}

}  // namespace parsimony
