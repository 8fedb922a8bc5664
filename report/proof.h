// A proof for people.
#pragma once

#include <string>

#include "parsimony/speedup/proof.h"

namespace parsimony {

/// One or two lines: what was compared, how large the difference was; with `all` each output.
std::string to_text(const Proof& proof, bool all = false);

}  // namespace parsimony
