// Limits of a whole network: the quantities that budgets count, and how much of them is left.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "parsimony/masks/cost.h"
#include "parsimony/masks/mask.h"
#include "parsimony/masks/memory.h"
#include "parsimony/pruners/settings.h"

namespace parsimony {

/// Is it counted on the whole network's graph? Others are shares of layers, or measured.
bool is_of_network(Budget budget);

/// Parameters, MACs, bytes of weights, of the file, of activations.
class Quantities {
 public:
  /// Shapes are those in `facts`.
  Quantities(const Graph& graph, const Facts& facts, const Coupling& coupling)
      : graph_(graph), facts_(facts), coupling_(coupling) {}

  /// Returns how much of the budget's quantity the network has under the masks.
  double operator()(Budget budget, const AxisMasks& masks);

 private:
  const CostModel& cost();
  const WeightBytes& weights();

  const Graph& graph_;
  const Facts& facts_;
  const Coupling& coupling_;
  std::optional<CostModel> cost_;
  std::optional<ActivationMemory> memory_;
  std::optional<WeightBytes> weights_;
  int64_t beside_weights_ = 0;  ///< what the file has
};

/// NetworkLimits that hold together.
class NetworkLimits {
 public:
  /// `quantities` must outlive it.
  NetworkLimits(Quantities& quantities, const Coupling& coupling, std::vector<Limit> limits);

  /// Returns what the masks leave; of several limits, the largest share of what may remain.
  double left(const AxisMasks& masks) const;
  /// Returns what may remain; 1 if there are several limits.
  double most() const;
  bool hold(const AxisMasks& masks) const { return limits_.empty() || left(masks) <= most(); }
  /// The limits that do not hold, and what is left there: a sentence each.
  std::vector<std::string> missed(const AxisMasks& masks) const;

 private:
  struct Most {
    Limit limit;
    double dense = 0;
    double amount = 0;
  };

  Quantities& quantities_;
  std::vector<Most> limits_;
};

/// Refuses what is more likely a slip than a wish, such as macs=50 where macs=50% is meant.
/// @throws ConfigError if a share that a request lets remain is below a thousandth
void check_shares(const Settings& settings, const Coupling& coupling, Quantities& quantities);

/// Checks one limit as check_shares does, for a network that has `dense` of its quantity.
void check_share(const Limit& limit, double dense);

/// "asked for at most 1000 MACs: no fewer than 1200 can be reached".
/// @param share_removed  of what is limited, used if the limit is a ratio
std::string shortfall(const Limit& limit, double share_removed, double left);

/// "asked for at most 1500 bytes of the file: 1561 remain"; empty if the limit holds.
std::string above_limit(const Limit& limit, int64_t dense, int64_t left);

}  // namespace parsimony
