// Memory that one input may take: 4 times its size and 64 MB.
#pragma once

#include <cstddef>

namespace parsimony::fuzz {

/// Counts what is allocated and not yet freed for as long as it lives; the allocation that exceeds
/// the limit ends the program, so that its stack shows who asked for it.
class MemoryLimit {
 public:
  explicit MemoryLimit(size_t input_bytes);
  ~MemoryLimit();
  MemoryLimit(const MemoryLimit&) = delete;
  MemoryLimit& operator=(const MemoryLimit&) = delete;
};

}  // namespace parsimony::fuzz
