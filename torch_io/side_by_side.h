// Concurrent runs.
#pragma once

#include <c10/core/Device.h>

#include <cstdint>
#include <functional>

namespace parsimony::torch_io {

/// Returns how many batches to run at once: on the CPU one for each core that this process may use,
/// at most 8, since each has its own activations; on other devices one.
int batches_at_once(c10::Device device);

/// Calls `work` with 0 … count - 1 concurrently, each on a thread whose operators use one core:
/// small batches gain less from several cores per operator, and results do not depend on the number
/// of threads. Gradients are recorded if the caller records them. Of several exceptions, throws
/// that of the lowest index.
void side_by_side(int64_t count, c10::Device device, const std::function<void(int64_t)>& work);

}  // namespace parsimony::torch_io
