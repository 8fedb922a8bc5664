// What may leave the component by exception.
#pragma once

#include <c10/util/Exception.h>

#include <stdexcept>
#include <utility>

namespace parsimony::component {

/// Calls `work`. libtorch's errors become plain ones, without its pages of backtrace: the command
/// knows no others, and those that can be a user's fault are caught further down.
template <typename Work>
auto guarded(Work&& work) {
  try {
    return std::forward<Work>(work)();
  } catch (const c10::Error& error) {
    throw std::runtime_error(error.what_without_backtrace());
  }
}

}  // namespace parsimony::component
