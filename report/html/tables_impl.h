// HTML from untrusted strings, and the tables of the page. Each chart has a table with the same
// data.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "parsimony/report/sweep/summary.h"

namespace parsimony {

/// Escapes text, also for quoted attributes.
std::string escaped(std::string_view text);

/// Escapes JSON for a script element, without characters that could end it.
std::string script_safe(std::string_view json);

using Cells = std::vector<std::string>;

/// Renders a table with an accessible caption. The first `left` cells of each row are text, the
/// others numbers.
std::string html_table(std::string_view caption, const Cells& names, size_t left,
                       const std::vector<Cells>& rows);

std::string front_table(const SweepReport& report);
std::string accuracy_table(const SweepReport& report);
std::string speedup_table(const SweepReport& report);
bool has_speedup(const SweepReport& report);
std::string time_table(const SweepReport& report);
std::string layers_table(const LedgerPoint& point);
std::string unpruned_table(const LedgerPoint& point);
std::string settings_table(const SweepReport& report);
std::string points_table(const SweepReport& report);
/// Renders model, data, machine and versions of the selected point.
std::string facts_table(const SweepReport& report);
/// Renders the configuration of a point, indented.
std::string escaped_config(const LedgerPoint& point);

}  // namespace parsimony
