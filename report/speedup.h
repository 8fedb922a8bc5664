// Results of speedup/ as text: a proof, a recovery, residual blocks.
#pragma once

#include <string>

#include "parsimony/api/prune_model.h"
#include "parsimony/speedup/plan.h"
#include "parsimony/speedup/proof.h"
#include "parsimony/speedup/recovery.h"

namespace parsimony {

/// Renders what was compared and the largest difference in one or two lines; with `all`, each
/// output. `plan` determines the reference.
std::string to_text(const Proof& proof, bool all = false, const Plan& plan = {});

/// Renders a table: output error and accuracy of the dense network, of the pruned one and after
/// each step.
std::string to_text(const RecoveryReport& report);

/// Renders "7 of 25 residual blocks removed." and, for `auto`, a table of the candidates; with
/// `all` also a table of the blocks.
std::string to_text(const DepthReport& report, bool all = false);

/// Renders a table of the removable blocks: their nodes, parameters, MACs.
std::string blocks_text(const DepthReport& report);
std::string blocks_json(const DepthReport& report);

}  // namespace parsimony
