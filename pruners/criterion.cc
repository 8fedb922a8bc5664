#include "parsimony/pruners/criterion.h"

#include <algorithm>
#include <array>

#include "parsimony/pruners/criteria/criteria.h"
#include "parsimony/pruners/elements/rule.h"
#include "parsimony/pruners/errors.h"
#include "parsimony/pruners/statistics.h"

namespace parsimony {

namespace {

constexpr auto kTable = std::to_array<Criterion>({
    {"apoz", criteria::apoz, Measure::kZeroShare},
    {"block", nullptr},
    {"bn_scale", criteria::bn_scale, {}, true},
    {"fisher", criteria::fisher, Measure::kFisher, true, true},
    {"fpgm", criteria::fpgm},
    {"group_norm", criteria::group_norm, {}, true},
    {"hrank", criteria::hrank, Measure::kRank},
    {"l1", criteria::l1},
    {"l2", criteria::l2},
    {"lamp", criteria::lamp, {}, true},
    {"level", nullptr},
    {"linf", criteria::linf},
    {"mean_activation", criteria::mean_activation, Measure::kMeanActivation},
    {"mean_activation_rank", criteria::mean_activation_rank, Measure::kMeanActivation, true},
    {"movement", criteria::movement, Measure::kMovement},
    {"nm", nullptr},
    {"obd", criteria::obd, Measure::kHessian, true, true},
    {"obs", criteria::obs, Measure::kActivationNorm, false, false, true},
    {"random", criteria::random},
    {"reap", criteria::reap, Measure::kContribution},
    {"sparsegpt", nullptr},
    {"taylor", criteria::taylor, Measure::kTaylor},
    {"taylor_squared", criteria::taylor_squared, Measure::kTaylorSquared, true, true},
    {"wanda", criteria::wanda, Measure::kActivationNorm},
    {"wanda_elements", nullptr},
});

}  // namespace

const Criterion& find_criterion(std::string_view name) {
  const std::string_view base = base_name(name);
  const auto has_name = [&](const Criterion& row) {
    return row.name == (row.score == nullptr ? base : name);
  };
  const auto* row = std::ranges::find_if(kTable, has_name);
  if (row == kTable.end()) throw errors::unknown_criterion(name);
  return *row;
}

std::vector<std::string> criterion_names() {
  std::vector<std::string> names;
  for (const Criterion& row : kTable) names.emplace_back(row.name);
  return names;
}

}  // namespace parsimony
