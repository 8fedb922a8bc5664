// Only in commands for other distributions (cmake/ParsimonyStatic.cmake): the static libstdc++ of Debian 12 wants
// arc4random for std::random_device, which glibc has since 2.36. Nothing else would ask for more than 2.35.

#include <unistd.h>

#include <cstdint>
#include <cstdlib>

#pragma GCC visibility push(hidden)
extern "C" std::uint32_t arc4random() noexcept {
  std::uint32_t number = 0;
  if (getentropy(&number, sizeof number) != 0) std::abort();
  return number;
}
#pragma GCC visibility pop
