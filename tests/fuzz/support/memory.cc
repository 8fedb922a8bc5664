#include "tests/fuzz/support/memory.h"

#include <sanitizer/allocator_interface.h>

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

namespace parsimony::fuzz {
namespace {

std::atomic<int64_t> live = 0;
std::atomic<int64_t> most = INT64_MAX;

void allocated(const volatile void* /*at*/, size_t bytes) {
  const int64_t now = live += static_cast<int64_t>(bytes);
  const int64_t limit = most;
  if (now <= limit) return;
  most = INT64_MAX;  // what follows allocates
  std::fprintf(stderr, "an allocation of %zu bytes makes %lld, more than %lld\n", bytes,
               static_cast<long long>(now), static_cast<long long>(limit));
  std::abort();
}

void freed(const volatile void* at) {
  if (at == nullptr) return;
  live -= static_cast<int64_t>(__sanitizer_get_allocated_size(const_cast<const void*>(at)));
}

}  // namespace

MemoryLimit::MemoryLimit(size_t input_bytes) {
  static const int installed = __sanitizer_install_malloc_and_free_hooks(allocated, freed);
  if (installed == 0) std::abort();
  most = live + 4 * static_cast<int64_t>(input_bytes) + (int64_t{64} << 20);
}

MemoryLimit::~MemoryLimit() { most = INT64_MAX; }

}  // namespace parsimony::fuzz
