// Parts shared by several reports: residual blocks, numbers that encode a size, phases of an epoch.
#pragma once

#include <string>
#include <vector>

#include "parsimony/report/json_impl.h"
#include "parsimony/report/ledger_point.h"
#include "parsimony/report/scales.h"
#include "parsimony/speedup/depth.h"

namespace parsimony {

/// {"blocks": […], "candidates": […]}
Json to_object(const DepthReport& report);

Json scales_json(const std::vector<ScaleRow>& rows);

/// A table; empty if there are none.
std::string scales_text(const std::vector<ScaleRow>& rows);

/// Of a run of `prune`: how many there are; with `all` the table, too.
std::string scales_text(const std::vector<ScaleRow>& rows, bool all);

inline Json to_object(const LedgerPoint::Phases& phases) {
  return {{"wait", phases.wait},
          {"forward", phases.forward},
          {"backward", phases.backward},
          {"optimizer", phases.optimizer},
          {"rest", phases.rest}};
}

}  // namespace parsimony
