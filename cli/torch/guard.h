// Translates exceptions that leave the component.
#pragma once

#include <c10/util/Exception.h>

#include <stdexcept>
#include <utility>

namespace parsimony::component {

/// Calls `work`. libtorch's errors are rethrown as standard exceptions, without backtraces; those
/// that can be a user's fault are handled further down.
template <typename Work>
auto guarded(Work&& work) {
  try {
    return std::forward<Work>(work)();
  } catch (const c10::Error& error) {
    throw std::runtime_error(error.what_without_backtrace());
  }
}

}  // namespace parsimony::component
