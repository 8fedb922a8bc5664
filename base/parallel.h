// A loop over several threads.
#pragma once

#include <cstdint>
#include <functional>

namespace parsimony {

/// Calls `body` with 0 … count - 1 on `threads` threads (0: one per core). Returns when all are
/// done; of several exceptions it throws that of the lowest index, like a plain loop.
void parallel_for(int64_t count, int threads, const std::function<void(int64_t)>& body);

}  // namespace parsimony
