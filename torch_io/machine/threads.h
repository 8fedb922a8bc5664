// How many threads ATen should use: measured, not guessed.
#pragma once

#include <optional>
#include <vector>

#include "parsimony/engines/machine/report.h"

namespace parsimony::torch_io {

/// Runs a small training step with 1, 2, 4, … and `most` threads; stops where more threads made it
/// slower. About 0.3 s, longer on an overloaded machine. ATen has its number as before afterwards.
std::vector<machine::ThreadTime> time_threads(int most);

/// The quickest; fewer threads where more hardly help.
int best_of(const std::vector<machine::ThreadTime>& times);

/// Sets the number of threads that ATen and OpenMP use in this thread, and keeps an OpenBLAS with
/// threads of its own from fighting with them. Without `wanted` a measurement decides, the first
/// time that it is called in a process; no more than the process has cores.
/// @returns the number that is set. @throws ConfigError if `wanted` is not positive
int choose_threads(std::optional<int> wanted = {});

}  // namespace parsimony::torch_io
