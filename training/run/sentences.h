// What a run says on its way.
#pragma once

#include <string>

#include "parsimony/report/ledger_point.h"
#include "parsimony/training/loop/profile.h"

namespace parsimony::training {

/// "85.31 % (8531 of 10000)"
std::string percent(const LedgerPoint::Score& score);
/// "1.25 s"
std::string seconds(double value);
/// Four digits behind the point.
std::string number(double value);
/// Where the time of an epoch went.
std::string taken_apart(const Phases& phases);

}  // namespace parsimony::training
