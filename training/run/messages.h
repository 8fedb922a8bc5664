// Progress messages of a run.
#pragma once

#include <string>

#include "parsimony/report/ledger_point.h"
#include "parsimony/training/loop/profile.h"

namespace parsimony::training {

/// "85.31 % (8531 of 10000)"
std::string percent(const LedgerPoint::Score& score);
/// "1.25 s"
std::string seconds(double value);
/// With four decimals.
std::string number(double value);
/// The phases of an epoch's time.
std::string taken_apart(const Phases& phases);

}  // namespace parsimony::training
