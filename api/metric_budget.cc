#include "parsimony/api/metric_budget.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "parsimony/api/prune_impl.h"
#include "parsimony/base/errors.h"
#include "parsimony/base/parse.h"
#include "parsimony/base/words.h"
#include "parsimony/engines/editable_model.h"

namespace parsimony {
namespace {

constexpr std::string_view kKey = "metric=";

/// Sets the share of MACs, without the limit for small remainders.
PruneRequest with_macs(PruneRequest request, double share) {
  request.config.force = true;
  for (ConfigEntry& entry : request.config.entries) {
    entry.request.budget = Budget::kMacs;
    entry.request.amount.reset();
    entry.request.ratio = 1 - share;
  }
  return request;
}

std::string found_by(const MetricTrial& trial) {
  return trial.value ? formatted("%.6g", *trial.value) : trial.failure;
}

class Bisection {
 public:
  Bisection(EditableModel& model, const PruneRequest& request, const PruneServices& services,
            const MetricSearch& search)
      : model_(model),
        request_(request),
        services_(services),
        search_(search),
        file_bytes_(model.graph().file_bytes) {}

  MetricOutcome run() {
    double too_little = 0;
    double enough = 1;
    for (int i = 0; i < search_.runs; ++i) {
      const double share = (too_little + enough) / 2;
      const MetricTrial& trial = trials_.emplace_back(tried(share));
      (trial.within ? enough : too_little) = share;
      if (search_.tried) search_.tried(trial);
    }
    if (enough == 1) throw none_within();
    return {prune_model(model_, with_macs(request_, enough), services_, &shared_),
            std::move(trials_)};
  }

 private:
  PruneResult unproven(double share) {
    PruneRequest request = with_macs(request_, share);
    request.verify = false;
    PruneServices services = services_;
    services.progress = {};
    return prune_model(model_, request, services, &shared_);
  }

  MetricTrial tried(double share) {
    MetricTrial trial{.macs = share};
    try {
      const double found = search_.measure(unproven(share));
      trial.value = found;
      trial.within = search_.lower_is_better ? found <= search_.bound : found >= search_.bound;
    } catch (const ModelError& error) {
      trial.failure = error.what();
    }
    model_.restore();
    model_.graph().file_bytes = file_bytes_;
    return trial;
  }

  ModelError none_within() const {
    const auto least = std::ranges::max_element(trials_, {}, &MetricTrial::macs);
    return ModelError("--budget metric=…: no pruned network meets it: with ",
                      formatted("%.4g%% of the MACs ", 100 * least->macs), search_.metric,
                      " yields ", found_by(*least), formatted(", expected %.6g", search_.bound));
  }

  EditableModel& model_;
  const PruneRequest& request_;
  const PruneServices& services_;
  const MetricSearch& search_;
  const int64_t file_bytes_;
  SharedAnalyses shared_;
  std::vector<MetricTrial> trials_;
};

}  // namespace

double MetricBudget::bound(double dense, bool lower_is_better) const {
  if (unit == Unit::kValue) return amount;
  const double loss = unit == Unit::kRelative ? amount * std::abs(dense) : amount;
  return lower_is_better ? dense + loss : dense - loss;
}

std::optional<MetricBudget> parse_metric_budget(std::string_view budget) {
  if (!budget.starts_with(kKey)) return {};
  const std::string_view text = budget.substr(kKey.size());
  const bool is_share = text.ends_with('%');
  const std::optional<double> number = share_of(text);
  const bool is_loss = text.starts_with('-');
  if (!number || !std::isfinite(*number) || (is_share && !is_loss)) {
    throw ConfigError("--budget ", in_quotes(budget),
                      ": expected metric=-1% (relative loss), metric=-0.5 (absolute loss) or "
                      "metric=0.9 (value to reach)");
  }
  using enum MetricBudget::Unit;
  if (!is_loss) return MetricBudget{*number, kValue};
  return MetricBudget{-*number, is_share ? kRelative : kPoints};
}

MetricOutcome prune_within(EditableModel& model, const PruneRequest& request,
                           const PruneServices& services, const MetricSearch& search) {
  if (search.runs < 1)
    throw ConfigError("MetricSearch: ", search.runs, " runs; expected at least 1");
  return Bisection(model, request, services, search).run();
}

}  // namespace parsimony
