// Sensitivity analysis: the network's error as each group alone loses channels.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "parsimony/api/importance.h"
#include "parsimony/api/prune.h"
#include "parsimony/pruners/importance.h"

namespace parsimony {

/// The error of a smaller network relative to the original; 0: none. The caller decides what to
/// compare: outputs, or accuracy.
using NetworkError = std::function<double(const Trial& small)>;

struct SensitivityOptions {
  std::string criterion = "l1";  ///< ranks the channels
  std::vector<double> ratios = {0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9};
  CriterionOptions scoring = {};
  std::function<void(std::string_view group)> progress = {};  ///< called when a stage begins
};

struct GroupSensitivity {
  GroupId group = kNone;  ///< of the coupling
  SensitivityCurve curve;
};

/// For one group at a time, with all others dense, removes floor(ratio · size) channels and
/// measures the error. Ratios that remove the same channels as a smaller one are not measured
/// again. Groups that cannot be pruned alone, and those of one channel, are skipped.
/// @throws ConfigError for an unknown criterion or one over elements; whatever `error_of` throws
std::vector<GroupSensitivity> sensitivity(const Graph& graph, const Analysis& analysis,
                                          const SensitivityOptions& options,
                                          const NetworkError& error_of);

}  // namespace parsimony
