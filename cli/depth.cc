#include "parsimony/cli/depth.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "parsimony/cli/comparison.h"
#include "parsimony/cli/errors.h"
#include "parsimony/cli/torch_component.h"
#include "parsimony/speedup/small_network.h"

namespace parsimony::cli {
namespace {

// So many samples tell candidates apart; recovery goes through them once per layer.
constexpr int64_t kTrialSamples = 128;

/// Compares outputs up to a factor: what is far off is often only smaller. Runs the original when
/// it is first asked.
PlanError as_pruned(const Graph& original, const CalibrationOrder& data) {
  auto comparison = std::make_shared<std::unique_ptr<NetworkComparison>>();
  return [&original, data, comparison](const Plan& plan) {
    if (!*comparison) {
      *comparison = std::make_unique<NetworkComparison>(compare_with(original, data, {}));
    }
    return (*comparison)->unexplained(SmallNetwork(original, plan).graph());
  };
}

/// ‖small - dense‖ / ‖dense‖ behind the steps of recovery, in one round of each.
PlanError recovered(const Graph& original, RecoveryOrder order) {
  order.calibration.samples = std::min(order.calibration.samples, kTrialSamples);
  order.rounds = 1;
  order.accuracy = false;
  order.say = {};
  return [&original, order](const Plan& plan) {
    if (plan.empty()) return 0.0;
    return torch_component().recover(original, plan, order).report.steps.back().after.error;
  };
}

}  // namespace

DepthOptions depth_options(const std::string& layers, const Graph& original,
                           const CalibrationOrder& data, const RecoveryOrder& recovery,
                           std::optional<int> threads) {
  DepthOptions options;
  options.request = parse_depth(layers, "--layers");
  if (data.data.empty()) throw errors::depth_without_data();
  options.influence = [data, threads](const Graph& graph,
                                      const std::vector<ResidualBlock>& blocks) {
    torch_component().choose_threads(threads);
    return torch_component().block_influences(graph, blocks, data);
  };
  RecoveryOrder quick = recovery;
  std::erase(quick.steps, RecoveryMethod::kFinetune);
  options.error = quick.steps.empty() ? as_pruned(original, data) : recovered(original, quick);
  return options;
}

}  // namespace parsimony::cli
