// Residual blocks as JSON.
#pragma once

#include "parsimony/report/json_impl.h"
#include "parsimony/speedup/depth.h"

namespace parsimony {

/// {"blocks": […], "candidates": […]}
Json to_object(const DepthReport& report);

}  // namespace parsimony
