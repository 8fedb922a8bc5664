// How reports show numbers that encode a size.
#pragma once

#include <string>
#include <vector>

#include "parsimony/report/json_impl.h"
#include "parsimony/report/scales.h"

namespace parsimony {

Json scales_json(const std::vector<ScaleRow>& rows);

/// A table; empty if there are none.
std::string scales_text(const std::vector<ScaleRow>& rows);

/// Of a run of `prune`: how many there are; with `all` the table, too.
std::string scales_text(const std::vector<ScaleRow>& rows, bool all);

}  // namespace parsimony
