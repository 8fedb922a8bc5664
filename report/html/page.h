// The report as a self-contained HTML page.
#pragma once

#include <string>

#include "parsimony/report/sweep/summary.h"

namespace parsimony {

/// Everything in the points is escaped; the page loads nothing and runs only its own script.
///
///     write_file("report.html", to_html(summarise(merge_ledgers(folders))));
std::string to_html(const SweepReport& report);

/// Can the page draw charts? Without the built-in chart library it has tables only.
bool has_charts();

}  // namespace parsimony
