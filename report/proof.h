// A proof for people.
#pragma once

#include <string>

#include "parsimony/speedup/plan.h"
#include "parsimony/speedup/proof.h"

namespace parsimony {

/// One or two lines: what was compared, how large the difference was; with `all` each output.
/// `plan` says of which original.
std::string to_text(const Proof& proof, bool all = false, const Plan& plan = {});

}  // namespace parsimony
