// Runs that go at the same time.
#pragma once

#include <c10/core/Device.h>

#include <cstdint>
#include <functional>

namespace parsimony::torch_io {

/// How many batches to run at once: on the processor one for each core that this process may use,
/// at most 8, since each has activations of its own; on other devices, which are busy with one,
/// one.
int batches_at_once(c10::Device device);

/// Calls `work` with 0 … count - 1 at the same time, each on a thread whose operators use one core:
/// small batches gain less from several cores for each operator, and results do not depend on how
/// many run at once. Gradients are recorded if the caller records them. Of several exceptions it
/// throws that of the lowest index.
void side_by_side(int64_t count, c10::Device device, const std::function<void(int64_t)>& work);

}  // namespace parsimony::torch_io
