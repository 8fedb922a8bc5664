// Huge pages for large allocations.
#pragma once

namespace parsimony::cli {

/// Makes the allocator use 2 MB pages if available, unless the environment
/// (MIMALLOC_LARGE_OS_PAGES) says otherwise. A tensor of 100 MB then takes 50 page faults instead
/// of 25,000; a small command would only pay for clearing pages that it does not fill.
void allow_large_pages();

}  // namespace parsimony::cli
