#include "parsimony/api/engine_services.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "parsimony/api/errors.h"
#include "parsimony/speedup/small_network.h"

namespace parsimony {
namespace {

// Enough samples to distinguish candidates; recovery reads them once per layer.
constexpr int64_t kTrialSamples = 128;

/// Returns whether an entry that prunes asks for it.
template <typename Asks>
bool any_request(const ConfigList& config, const Asks& asks) {
  return std::ranges::any_of(config.entries, [&](const ConfigEntry& entry) {
    return !entry.exclude && asks(entry.request);
  });
}

/// Returns the request's data, completed by its settings of the network's inputs.
CalibrationData data_of(const PruneRequest& request) {
  CalibrationData data = calibration_of(request);
  data.inputs = request.inputs;
  data.states = request.interface.states;
  return data;
}

/// Compares outputs up to a factor, since pruning often only scales them down. Runs the original on
/// first use.
PlanError as_pruned(const Graph& original, const CalibrationData& data, DataEngine& engine) {
  auto comparison = std::make_shared<std::unique_ptr<NetworkComparison>>();
  return [&original, data, comparison, &engine](const Plan& plan) {
    if (!*comparison) {
      *comparison = std::make_unique<NetworkComparison>(compare_with(original, data, {}, engine));
    }
    return (*comparison)->unexplained(SmallNetwork(original, plan).graph());
  };
}

/// Returns ‖small - dense‖ / ‖dense‖ after one round of each recovery step.
PlanError recovered(const Graph& original, RecoverySettings settings, CalibrationData data,
                    DataEngine& engine) {
  data.samples = std::min(data.sample_count(), kTrialSamples);
  settings.rounds = 1;
  settings.accuracy = false;
  return [&original, settings, data, &engine](const Plan& plan) {
    if (plan.empty()) return 0.0;
    return engine.recover(original, plan, settings, data).report.steps.back().after.error;
  };
}

}  // namespace

EngineServices::EngineServices(const PruneRequest& request, const Graph& original,
                               PruneServices given)
    : PruneServices(std::move(given)),
      data_(request.engine, request.threads, data_of(request)),
      engine_(engine_of(request.engine, request.threads)) {
  const CalibrationData data = data_of(request);
  if (engine == nullptr) engine = engine_.get();
  run_data(data);
  const auto asks_for_latency = [](const Request& r) { return r.budget == Budget::kLatency; };
  const auto asks_for_outputs = [](const Request& r) {
    return r.scope == Scope::kOutputs || contains(r.scopes, Scope::kOutputs);
  };
  const auto has_target = [](const Request& r) { return r.target.has_value(); };
  const bool for_budget = any_request(request.config, asks_for_latency);
  if (meter == nullptr && (for_budget || any_request(request.config, has_target))) {
    try {
      time_networks(request);
    } catch (const UnsupportedError&) {
      if (for_budget) throw;  // a target's widths need no clock
    }
  }
  const bool required = any_request(request.config, asks_for_outputs);
  if (!r_squared && ((profiler_ && for_budget) || required)) {
    compare_outputs(original, data, required);
  }
  const RecoverySettings settings = recovery_of(request);
  if (!recover) {
    recover_with(settings, data);
    if (!repair && has_choice(request.config)) repair_with(settings, data);
  }
  if (request.depth && !influence) rank_blocks(original, settings, data);
}

void EngineServices::save() {
  if (profiler_) profiler_->save();
}

void EngineServices::run_data(const CalibrationData& data) {
  if (!measure && !data.data.empty()) {
    measure = [this, data](const auto&... what) { return data_.measure(what..., data); };
  }
  if (!observe) {
    observe = [this](const auto&... what) { return data_.torch().loaded().observe(what...); };
  }
}

void EngineServices::time_networks(const PruneRequest& request) {
  profiler_.emplace(request);
  meter = &profiler_->meter();
  tables = &profiler_->tables();
}

/// A latency budget proceeds without the comparison if no engine can run the network.
void EngineServices::compare_outputs(const Graph& original, const CalibrationData& data,
                                     bool required) {
  try {
    comparison_.emplace(compare_with(original, data, {data.inputs}, data_));
    r_squared = [this](const Graph& small) { return comparison_->r_squared(small); };
  } catch (const UnsupportedError& failure) {
    if (required) throw;
    without_outputs_ = failure.what();
  }
}

void EngineServices::recover_with(const RecoverySettings& settings, const CalibrationData& data) {
  if (settings.steps.empty()) return;
  if (data.data.empty()) throw errors::recovery_without_data();
  data_.check_recovery(settings);
  recover = [this, settings, data](const Graph& original, const Plan& plan) {
    return data_.recover(original, plan, settings, data, say);
  };
}

void EngineServices::repair_with(RecoverySettings settings, CalibrationData data) {
  if (data.data.empty()) throw errors::comparison_without_data();
  std::erase_if(settings.steps, [](RecoveryMethod method) { return !is_closed_form(method); });
  settings.accuracy = false;
  data.judges = true;
  repair = [this, settings, data](const Graph& original, const Plan& plan) {
    return data_.recover(original, plan, settings, data, say);
  };
}

/// Candidates of `auto` are compared after the recovery steps, except fine-tuning.
void EngineServices::rank_blocks(const Graph& original, const RecoverySettings& settings,
                                 const CalibrationData& data) {
  if (data.data.empty()) {
    throw ConfigError(
        "--layers ranks blocks by their influence on data: pass --calibration DATA, for example "
        "--calibration cifar10:DIR");
  }
  influence = [this, data](const Graph& graph, const std::vector<ResidualBlock>& blocks) {
    return data_.block_influences(graph, blocks, data);
  };
  RecoverySettings quick = settings;
  std::erase(quick.steps, RecoveryMethod::kFinetune);
  error = quick.steps.empty() ? as_pruned(original, data, data_)
                              : recovered(original, std::move(quick), data, data_);
}

}  // namespace parsimony
