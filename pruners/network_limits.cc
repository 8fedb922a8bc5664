#include "parsimony/pruners/network_limits.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace parsimony {
namespace {

std::string unit_of(Budget budget) {
  switch (budget) {
    case Budget::kMacs:
      return "MACs";
    case Budget::kParams:
      return "parameters";
    case Budget::kWeights:
      return "weights";
    case Budget::kWeightBytes:
      return "bytes of weights";
    case Budget::kFile:
      return "bytes of the file";
    case Budget::kPeakRam:
      return "bytes of activations";
    default:
      return "channels";
  }
}

/// How much may remain.
double most_of(const Limit& limit, double dense) {
  constexpr double kRounding = 1e-12;  // 1000 · (1 - 0.9) is 99.99…
  return limit.amount.value_or(std::floor(dense * (1 - limit.ratio + kRounding)));
}

}  // namespace

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
    const double gone = most.dense > 0 ? 1 - left / most.dense : 0;
    missed.push_back(shortfall(most.limit, gone, left));
  }
  return missed;
}

std::string shortfall(const Limit& limit, double share_gone, double left) {
  char text[200];
  const std::string unit = unit_of(limit.budget);
  if (limit.amount) {
    std::snprintf(text, sizeof text, "asked for at most %.0f %s: no fewer than %.0f can be reached",
                  *limit.amount, unit.c_str(), left);
  } else {
    std::snprintf(text, sizeof text, "asked to remove %g%% of the %s: no more than %.1f%% can go",
                  limit.ratio * 100, unit.c_str(), share_gone * 100);
  }
  return text;
}

std::string above_limit(const Limit& limit, int64_t dense, int64_t left) {
  const double most = most_of(limit, static_cast<double>(dense));
  if (static_cast<double>(left) <= most) return {};
  char text[200];
  std::snprintf(text, sizeof text, "asked for at most %.0f %s: %lld remain", most,
                unit_of(limit.budget).c_str(), static_cast<long long>(left));
  return text;
}

}  // namespace parsimony
