// Curves of what each group's channels are worth to the network as a whole.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "parsimony/api/prune.h"
#include "parsimony/pruners/sensitivity.h"

namespace parsimony {

/// How far a smaller network is from the original; 0: not at all. What it compares is the caller's:
/// outputs, or accuracy.
using NetworkError = std::function<double(const Graph& small)>;

struct SensitivityOptions {
  std::string criterion = "l1";  ///< which channels go first
  std::vector<double> ratios = {0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9};
  CriterionOptions scoring = {};
  std::function<void(std::string_view group)> progress = {};  ///< told what begins
};

struct GroupSensitivity {
  int group = kNone;  ///< of the coupling
  SensitivityCurve curve;
};

/// Removes floor(ratio · size) channels of one group after the other, all others whole, and asks
/// for the error. Ratios that remove what a smaller one did are not asked for again. Groups that
/// cannot be cut alone are left out, as are those of one channel.
/// @throws ConfigError for an unknown criterion or one that judges elements; what `error_of` throws
std::vector<GroupSensitivity> sensitivity(const Graph& graph, const Analysis& analysis,
                                          const SensitivityOptions& options,
                                          const NetworkError& error_of);

}  // namespace parsimony
