#include "parsimony/cli/depth.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "parsimony/cli/comparison.h"
#include "parsimony/cli/errors.h"
#include "parsimony/speedup/small_network.h"

namespace parsimony::cli {
namespace {

// So many samples tell candidates apart; recovery goes through them once per layer.
constexpr int64_t kTrialSamples = 128;

/// Compares outputs up to a factor: what is far off is often only smaller. Runs the original when
/// it is first asked.
PlanError as_pruned(const Graph& original, const CalibrationOrder& data, LazyTorch& torch) {
  auto comparison = std::make_shared<std::unique_ptr<NetworkComparison>>();
  return [&original, data, comparison, &torch](const Plan& plan) {
    if (!*comparison) {
      *comparison = std::make_unique<NetworkComparison>(compare_with(original, data, {}, torch));
    }
    return (*comparison)->unexplained(SmallNetwork(original, plan).graph());
  };
}

/// ‖small - dense‖ / ‖dense‖ behind the steps of recovery, in one round of each.
PlanError recovered(const Graph& original, RecoveryOrder order, LazyTorch& torch) {
  order.calibration.samples = std::min(order.calibration.samples, kTrialSamples);
  order.rounds = 1;
  order.accuracy = false;
  order.say = {};
  return [&original, order, &torch](const Plan& plan) {
    if (plan.empty()) return 0.0;
    return torch.loaded().recover(original, plan, order).report.steps.back().after.error;
  };
}

}  // namespace

void add_depth(const std::string& layers, const Graph& original, const CalibrationOrder& data,
               const RecoveryOrder& recovery, LazyTorch& torch, PruneOptions& options) {
  options.depth = parse_depth(layers, "--layers");
  if (data.data.empty()) throw errors::depth_without_data();
  options.influence = [data, &torch](const Graph& graph, const std::vector<ResidualBlock>& blocks) {
    return torch.loaded().block_influences(graph, blocks, data);
  };
  RecoveryOrder quick = recovery;
  std::erase(quick.steps, RecoveryMethod::kFinetune);
  options.error =
      quick.steps.empty() ? as_pruned(original, data, torch) : recovered(original, quick, torch);
}

}  // namespace parsimony::cli
