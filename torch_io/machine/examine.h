// What the machine costs the networks that run on it here.
#pragma once

#include "parsimony/engines/machine/report.h"

namespace parsimony::torch_io {

/// Looks at the processor, BLAS, threads, libtorch and allocator of this process, measures what
/// they cost and says what to do. Takes about a second; settings are as before afterwards.
///
///     for (const auto& finding : parsimony::torch_io::examine().findings)
///       std::cerr << finding.subject << ": " << finding.advice << "\n";
machine::MachineReport examine();

}  // namespace parsimony::torch_io
