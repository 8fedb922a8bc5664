#include "parsimony/api/supplies.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "parsimony/api/data_engine.h"
#include "parsimony/api/errors.h"
#include "parsimony/speedup/small_network.h"

namespace parsimony {
namespace {

// Enough samples to distinguish candidates; recovery reads them once per layer.
constexpr int64_t kTrialSamples = 128;

/// Does an entry that prunes use it?
template <typename Asks>
bool any_request(const ConfigList& config, const Asks& asks) {
  return std::ranges::any_of(config.entries, [&](const ConfigEntry& entry) {
    return !entry.exclude && asks(entry.request);
  });
}

/// Compares outputs up to a factor, since outputs of a pruned network are often only smaller. Runs
/// the original on first use.
PlanError as_pruned(const Graph& original, const CalibrationData& data, DataEngine& engine) {
  auto comparison = std::make_shared<std::unique_ptr<NetworkComparison>>();
  return [&original, data, comparison, &engine](const Plan& plan) {
    if (!*comparison) {
      *comparison = std::make_unique<NetworkComparison>(compare_with(original, data, {}, engine));
    }
    return (*comparison)->unexplained(SmallNetwork(original, plan).graph());
  };
}

/// ‖small - dense‖ / ‖dense‖ after the steps of recovery, in one round of each.
PlanError recovered(const Graph& original, RecoverySettings settings, CalibrationData data,
                    DataEngine& engine) {
  data.samples = std::min(data.samples, kTrialSamples);
  settings.rounds = 1;
  settings.accuracy = false;
  settings.say = {};
  return [&original, settings, data, &engine](const Plan& plan) {
    if (plan.empty()) return 0.0;
    return engine.recover(original, plan, settings, data).report.steps.back().after.error;
  };
}

}  // namespace

void take_calibration(CalibrationData& given, const ConfigList& config) {
  if (!given.data.empty() || !config.calibration) return;
  given.data = config.calibration->data;
  given.samples = config.calibration->samples;
  if (given.image.empty()) given.image = config.calibration->image;
}

Supplies::Supplies(PruneOptions& options, const ConfigList& config, const Graph& original)
    : data_(options.engine, options.threads), engine_(engine_of(options.engine, options.threads)) {
  CalibrationData& data = options.calibration;
  take_calibration(data, config);
  data.inputs = options.inputs;
  data.states = options.interface.states;
  if (!options.measure && !data.data.empty()) {
    options.measure = [this, data](const auto&... what) { return data_.measure(what..., data); };
  }
  if (!options.observe) {
    options.observe = [this](const auto&... what) {
      return data_.torch().loaded().observe(what...);
    };
  }
  const auto asks_for_latency = [](const Request& r) { return r.budget == Budget::kLatency; };
  const auto asks_for_outputs = [](const Request& r) { return r.scope == Scope::kOutputs; };
  const auto has_target = [](const Request& r) { return r.target.has_value(); };
  const bool for_budget = any_request(config, asks_for_latency);
  if (options.latency.meter == nullptr && (for_budget || any_request(config, has_target))) {
    try {
      profiler_.emplace(options);
      profiler_->attach_to(options);
    } catch (const UnsupportedError&) {
      if (for_budget) throw;  // a target's widths need no clock
    }
  }
  const bool required = any_request(config, asks_for_outputs);
  if (!options.r_squared && ((profiler_ && for_budget) || required)) {
    compare_outputs(options, original, required);
  }
  if (!options.recover) recover(options, config);
  if (options.depth && !options.influence) remove_blocks(options, original);
}

void Supplies::save() {
  if (profiler_) profiler_->save();
}

/// A latency budget does without it if no engine can run the network.
void Supplies::compare_outputs(PruneOptions& options, const Graph& original, bool required) {
  try {
    comparison_.emplace(compare_with(original, options.calibration, {options.inputs}, data_));
    options.r_squared = [this](const Graph& small) { return comparison_->r_squared(small); };
  } catch (const UnsupportedError& error) {
    if (required) throw;
    without_outputs_ = error.what();
  }
}

void Supplies::recover(PruneOptions& options, const ConfigList& config) {
  RecoverySettings& settings = options.recovery;
  if (settings.steps.empty()) {
    for (const std::string& step : config.recover) {
      settings.steps.push_back(parse_recovery(step, "--recover"));
    }
  }
  if (settings.steps.empty()) return;
  if (options.calibration.data.empty()) throw errors::recovery_without_data();
  options.recover = [this, settings, data = options.calibration](const Graph& original,
                                                                 const Plan& plan) {
    return data_.recover(original, plan, settings, data);
  };
}

/// Candidates of `auto` are compared after the recovery steps, except fine-tuning.
void Supplies::remove_blocks(PruneOptions& options, const Graph& original) {
  const CalibrationData& data = options.calibration;
  if (data.data.empty()) {
    throw ConfigError(
        "--layers removes the blocks that change their input least, which needs data; give "
        "--calibration, for example cifar10:DIR");
  }
  options.influence = [this, data](const Graph& graph, const std::vector<ResidualBlock>& blocks) {
    return data_.torch().loaded().block_influences(graph, blocks, data);
  };
  RecoverySettings quick = options.recovery;
  std::erase(quick.steps, RecoveryMethod::kFinetune);
  options.error = quick.steps.empty() ? as_pruned(original, data, data_)
                                      : recovered(original, std::move(quick), data, data_);
}

}  // namespace parsimony
