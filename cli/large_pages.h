// Pages of 2 MB for what is large.
#pragma once

namespace parsimony::cli {

/// From here on the allocator asks the system for pages of 2 MB, where it has them and the
/// environment (MIMALLOC_LARGE_OS_PAGES) says nothing else. A tensor of 100 MB then takes 50 page
/// faults and not 25,000; a small command would only pay for clearing pages that it does not fill.
void allow_large_pages();

}  // namespace parsimony::cli
