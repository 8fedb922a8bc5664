// The tables of the page. Each chart has one that says the same.
#pragma once

#include <string>

#include "parsimony/report/sweep/summary.h"

namespace parsimony {

std::string front_table(const SweepReport& report);
std::string accuracy_table(const SweepReport& report);
std::string speedup_table(const SweepReport& report);
bool has_speedup(const SweepReport& report);
std::string time_table(const SweepReport& report);
std::string layers_table(const LedgerPoint& point);
std::string kept_whole_table(const LedgerPoint& point);
std::string settings_table(const SweepReport& report);
std::string points_table(const SweepReport& report);
/// Model, data, machine and versions of the selected point.
std::string facts_table(const SweepReport& report);
/// Its configuration, indented.
std::string escaped_config(const LedgerPoint& point);

}  // namespace parsimony
