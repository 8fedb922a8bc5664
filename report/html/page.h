// The report as a page: one file that needs nothing else.
#pragma once

#include <string>

#include "parsimony/report/sweep/summary.h"

namespace parsimony {

/// The page. Nothing in the points is taken for markup; the page fetches nothing and runs no
/// script but its own.
///
///     write_file("report.html", to_html(summarise(merge_ledgers(folders))));
std::string to_html(const SweepReport& report);

/// Can the page draw charts? Where the chart library was not built in it has tables only.
bool has_charts();

}  // namespace parsimony
