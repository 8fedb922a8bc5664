// What libtorch says when it fails.
#pragma once

#include <c10/util/Exception.h>

#include <exception>
#include <string>

namespace parsimony::torch_io {

/// The message without libtorch's backtrace. Some of its functions throw plain std::runtime_error.
inline std::string reason_of(const std::exception& error) {
  const auto* torch = dynamic_cast<const c10::Error*>(&error);
  return torch != nullptr ? torch->what_without_backtrace() : error.what();
}

}  // namespace parsimony::torch_io
