// Self-contained HTML pages: the report of a sweep, the picture of a network.
#pragma once

#include <string>

#include "parsimony/report/network/picture.h"
#include "parsimony/report/sweep/summary.h"

namespace parsimony {

/// Renders the report of a sweep. Everything in the points is escaped; the page loads nothing and
/// runs only its own script.
///
///     write_file("report.html", to_html(summarise(merge_ledgers(folders))));
std::string to_html(const SweepReport& report);

/// Returns whether pages have charts; without the built-in chart library they have tables only.
bool has_charts();

/// Renders the network as boxes to scroll, zoom and click. Names are escaped; the page loads
/// nothing and runs only its own script.
///
///     write_file("network.html", to_html(picture_of(graph, facts, coupling, probe)));
std::string to_html(const NetworkPicture& picture);

}  // namespace parsimony
