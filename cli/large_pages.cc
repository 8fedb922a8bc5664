#include "parsimony/cli/large_pages.h"

#ifdef PARSIMONY_HAS_MIMALLOC
#include <mimalloc.h>
#endif

#include <cstdlib>

namespace parsimony::cli {

void allow_large_pages() {
#ifdef PARSIMONY_HAS_MIMALLOC
  const char* value = std::getenv("MIMALLOC_LARGE_OS_PAGES");
  if (value == nullptr || *value == '\0') mi_option_enable(mi_option_large_os_pages);
#endif
}

}  // namespace parsimony::cli
