// A proof for people.
#pragma once

#include <string>

#include "parsimony/speedup/plan.h"
#include "parsimony/speedup/proof.h"

namespace parsimony {

/// One or two lines: what was compared, how large the difference was; with `all` each output.
/// `constants` says of which original.
std::string to_text(const Proof& proof, bool all = false, Constants constants = Constants::kDrop);

}  // namespace parsimony
