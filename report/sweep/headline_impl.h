// Which network the report begins with. Private to report/.
#pragma once

#include "parsimony/report/sweep/summary.h"

namespace parsimony {

/// Fills in what is selected, why, and the lines of the headline.
void choose_headline(SweepReport& report);

}  // namespace parsimony
