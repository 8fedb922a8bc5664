// A recovery for people.
#pragma once

#include <string>

#include "parsimony/speedup/recovery.h"

namespace parsimony {

/// A table: output error and accuracy of the dense network, of the pruned one and behind each step.
std::string to_text(const RecoveryReport& report);

}  // namespace parsimony
