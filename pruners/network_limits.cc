#include "parsimony/pruners/network_limits.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "parsimony/base/errors.h"

namespace parsimony {
namespace {

constexpr double kLeastShare = 1e-3;

struct BudgetWords {
  const char* key;  ///< as budgets are written: "macs=50%"
  const char* unit;
};

BudgetWords words_of(Budget budget) {
  switch (budget) {
    case Budget::kMacs:
      return {"macs", "MACs"};
    case Budget::kParams:
      return {"params", "parameters"};
    case Budget::kWeights:
      return {"weights", "weights"};
    case Budget::kWeightBytes:
      return {"weights", "bytes of weights"};
    case Budget::kFile:
      return {"file", "bytes of the file"};
    case Budget::kPeakRam:
      return {"peak_ram", "bytes of activations"};
    case Budget::kLatency:
      return {"latency_ms", "milliseconds"};
    default:
      return {"channels", "channels"};
  }
}

/// Returns how much may remain.
double most_of(const Limit& limit, double dense) {
  constexpr double kRounding = 1e-12;  // 1000 · (1 - 0.9) is 99.99…
  return limit.amount.value_or(std::floor(dense * (1 - limit.ratio + kRounding)));
}

}  // namespace

bool is_of_network(Budget budget) {
  return budget != Budget::kChannels && budget != Budget::kWeights && budget != Budget::kLatency;
}

double Quantities::operator()(Budget budget, const AxisMasks& masks) {
  switch (budget) {
    case Budget::kMacs:
      return static_cast<double>(cost().under(masks).macs);
    case Budget::kPeakRam:
      if (!memory_) memory_.emplace(graph_, facts_, coupling_);
      return static_cast<double>(memory_->peak(masks));
    case Budget::kFile:
      return static_cast<double>(weights().under(masks) + beside_weights_);
    case Budget::kWeightBytes:
      return static_cast<double>(weights().under(masks));
    default:
      return static_cast<double>(cost().under(masks).params);
  }
}

const CostModel& Quantities::cost() {
  if (!cost_) cost_.emplace(graph_, facts_, coupling_);
  return *cost_;
}

const WeightBytes& Quantities::weights() {
  if (!weights_) {
    weights_.emplace(graph_, coupling_);
    const int64_t dense = weights_->under(AxisMasks::all_kept(coupling_));
    beside_weights_ = std::max<int64_t>(0, graph_.file_bytes - dense);
  }
  return *weights_;
}

NetworkLimits::NetworkLimits(Quantities& quantities, const Coupling& coupling,
                             std::vector<Limit> limits)
    : quantities_(quantities) {
  for (const Limit& limit : limits) {
    const double dense = quantities(limit.budget, AxisMasks::all_kept(coupling));
    limits_.push_back({limit, dense, most_of(limit, dense)});
  }
}

double NetworkLimits::left(const AxisMasks& masks) const {
  if (limits_.size() == 1) return quantities_(limits_[0].limit.budget, masks);
  double largest = 0;
  for (const Most& most : limits_) {
    largest = std::max(largest, quantities_(most.limit.budget, masks) / most.amount);
  }
  return largest;
}

double NetworkLimits::most() const { return limits_.size() == 1 ? limits_[0].amount : 1; }

std::vector<std::string> NetworkLimits::missed(const AxisMasks& masks) const {
  std::vector<std::string> missed;
  for (const Most& most : limits_) {
    const double left = quantities_(most.limit.budget, masks);
    if (left <= most.amount) continue;
    const double removed = most.dense > 0 ? 1 - left / most.dense : 0;
    missed.push_back(shortfall(most.limit, removed, left));
  }
  return missed;
}

void check_share(const Limit& limit, double dense) {
  const double share = limit.amount ? *limit.amount / dense : 1 - limit.ratio;
  if (share >= kLeastShare) return;
  if (!limit.amount) {
    throw ConfigError(
        formatted("%g%% may remain", 100 * share),
        ": less than a thousandth. Such a cut has to be forced: --force, or force=True in Python");
  }
  const auto [key, unit] = words_of(limit.budget);
  constexpr double kMostPercent = 100;
  const std::string budget = str_cat(key, "=", formatted("%g", *limit.amount));
  throw ConfigError("budget ", budget, ": less than a thousandth of the ",
                    formatted("%.10g ", dense), unit, " that the network has.",
                    *limit.amount <= kMostPercent ? " Did you mean " + budget + "%?" : "",
                    " Such a cut has to be forced: --force, or force=True in Python");
}

void check_shares(const Settings& settings, const Coupling& coupling, Quantities& quantities) {
  if (settings.force) return;
  const AxisMasks all = AxisMasks::all_kept(coupling);
  for (const Request& request : settings.requests) {
    std::vector<Limit> limits = request.also;
    limits.push_back({request.budget, request.amount, request.ratio});
    for (const Limit& limit : limits) {
      if (!limit.amount) {
        check_share(limit, 1);
      } else if (is_of_network(limit.budget)) {
        check_share(limit, quantities(limit.budget, all));
      }
    }
  }
}

std::string shortfall(const Limit& limit, double share_removed, double left) {
  char text[200];
  const char* const unit = words_of(limit.budget).unit;
  if (limit.amount) {
    std::snprintf(text, sizeof text, "asked for at most %.0f %s: no fewer than %.0f can be reached",
                  *limit.amount, unit, left);
  } else {
    std::snprintf(text, sizeof text, "asked to remove %g%% of the %s: no more than %.1f%% can go",
                  limit.ratio * 100, unit, share_removed * 100);
  }
  return text;
}

std::string above_limit(const Limit& limit, int64_t dense, int64_t left) {
  const double most = most_of(limit, static_cast<double>(dense));
  if (static_cast<double>(left) <= most) return {};
  char text[200];
  std::snprintf(text, sizeof text, "asked for at most %.0f %s: %lld remain", most,
                words_of(limit.budget).unit, static_cast<long long>(left));
  return text;
}

}  // namespace parsimony
