// Examines the performance of the machine and its libraries.
#pragma once

#include "parsimony/engines/machine/report.h"

namespace parsimony::torch_io {

/// Examines the processor, BLAS, threads, libtorch and allocator of this process, measures their
/// performance and gives advice. Takes about a second; settings are restored afterwards.
///
///     for (const auto& finding : parsimony::torch_io::examine().findings)
///       std::cerr << finding.subject << ": " << finding.advice << "\n";
machine::MachineReport examine();

}  // namespace parsimony::torch_io
