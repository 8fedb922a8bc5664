#include "parsimony/cli/metric_budget.h"

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "parsimony/base/errors.h"
#include "parsimony/base/parse.h"
#include "parsimony/base/temporary_folder.h"
#include "parsimony/cli/options.h"
#include "parsimony/report/text.h"

namespace parsimony::cli {
namespace {

constexpr std::string_view kKey = "metric=";

/// What the metric must be at least; at most, where lower is better.
double bound_of(const MetricBudget& budget, double dense, bool lower_is_better) {
  using enum MetricBudget::Unit;
  if (budget.unit == kValue) return budget.amount;
  const double loss = budget.unit == kShare ? budget.amount * std::abs(dense) : budget.amount;
  return lower_is_better ? dense + loss : dense - loss;
}

PruneCommandOptions with_macs(PruneCommandOptions options, double share) {
  options.shorthand.budget = formatted("macs=%.10g%%", 100 * share);
  options.shorthand.force = true;  // the metric says how much
  return options;
}

/// Of the same pruning, but of the model alone, unproven, into a folder.
PruneCommandOptions trial_of(PruneCommandOptions options, const std::filesystem::path& folder) {
  options.output = folder / std::filesystem::path(options.output).filename();
  if (!options.checkpoint.out.empty()) options.checkpoint.out = options.output;
  for (std::string* file : {&options.plan, &options.report, &options.html, &options.masks}) {
    file->clear();
  }
  options.prune.verify = false;
  options.metric.commands.clear();
  return options;
}

std::string found_by(const MetricTrial& trial) {
  return trial.value ? formatted("%.6g", *trial.value) : trial.failure;
}

}  // namespace

std::optional<MetricBudget> parse_metric_budget(const std::string& budget) {
  if (!budget.starts_with(kKey)) return {};
  const std::string_view text = std::string_view(budget).substr(kKey.size());
  const bool is_share = text.ends_with('%');
  const std::optional<double> number = share_of(text);
  const bool is_loss = text.starts_with('-');
  if (!number || !std::isfinite(*number) || (is_share && !is_loss)) {
    throw ConfigError("--budget ", in_quotes(budget),
                      ": wanted metric=-1% (worse by that share of the dense network's), "
                      "metric=-0.5 (worse by so much) or metric=0.9 (its value)");
  }
  using enum MetricBudget::Unit;
  if (!is_loss) return MetricBudget{*number, kValue};
  return MetricBudget{-*number, is_share ? kShare : kPoints};
}

void prune_within(
    const MetricBudget& budget, const PruneCommandOptions& options, const Session& session,
    const std::function<void(const PruneCommandOptions& options, const Session& session,
                             std::vector<MetricRow> metrics)>& prune) {
  if (options.metric.commands.size() != 1) {
    throw ConfigError("--budget metric=…: wanted one --metric, found ",
                      options.metric.commands.size());
  }
  if (!options.config.empty() || options.shorthand.ratio != 0) {
    throw ConfigError(
        "--budget metric=… looks for a share of the MACs; give --criterion, --scope and the like "
        "in place of a --config that says how much, and no --ratio");
  }
  Meter meter(options.metric, options.model,
              metric_data(options, resolved(options.prune.calibration, {})));
  std::vector<MetricRow> metrics = meter.before();
  MetricRow& metric = metrics.front();
  const double bound = bound_of(budget, metric.before, metric.lower_is_better);
  metric.bound = bound;
  const TemporaryFolder folder;
  double too_little = 0;
  double enough = 1;
  for (int i = 0; i < options.metric.runs; ++i) {
    const double share = (too_little + enough) / 2;
    PruneCommandOptions once = trial_of(with_macs(options, share), folder.path());
    Session quiet = session;
    quiet.quiet = true;
    MetricTrial& trial = metric.trials.emplace_back();
    trial.macs = share;
    try {
      prune(once, quiet, {});
      const double found = meter.measure(metric, once.output).value;
      trial.value = found;
      trial.within = metric.lower_is_better ? found <= bound : found >= bound;
    } catch (const ModelError& error) {
      trial.failure = error.what();
    }
    (trial.within ? enough : too_little) = share;
    if (!session.quiet) {
      log_line(once.shorthand.budget + ": " + found_by(trial) + formatted(", wanted %.6g", bound));
    }
  }
  if (enough == 1) {
    const auto least = std::ranges::max_element(metric.trials, {}, &MetricTrial::macs);
    throw ModelError("--budget metric=…: no cut is within it: with ",
                     formatted("%.4g%% of the MACs ", 100 * least->macs), metric.command, " gives ",
                     found_by(*least), formatted(", wanted %.6g", bound));
  }
  prune(with_macs(options, enough), session, std::move(metrics));
}

}  // namespace parsimony::cli
