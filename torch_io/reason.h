// Error messages of libtorch.
#pragma once

#include <c10/util/Exception.h>

#include <exception>
#include <string>
#include <string_view>

namespace parsimony::torch_io {

/// Returns the message without backtraces of C++ or TorchScript. Some functions of libtorch throw
/// plain std::runtime_error.
inline std::string reason_of(const std::exception& error) {
  const auto* torch = dynamic_cast<const c10::Error*>(&error);
  std::string text = torch != nullptr ? torch->what_without_backtrace() : error.what();
  constexpr std::string_view kReason = "RuntimeError: ";
  const size_t reason = text.rfind(kReason);
  if (text.find("Traceback of TorchScript") == std::string::npos || reason == std::string::npos) {
    return text;
  }
  text = text.substr(reason + kReason.size());
  return text.substr(0, text.find_last_not_of(" \n") + 1);
}

/// Returns only the first non-empty line, without a backtrace.
inline std::string first_line(const std::exception& error) {
  const auto* torch = dynamic_cast<const c10::Error*>(&error);
  const std::string text = torch == nullptr ? error.what() : torch->what_without_backtrace();
  const size_t begin = text.find_first_not_of('\n');
  return begin == std::string::npos ? "" : text.substr(begin, text.find('\n', begin) - begin);
}

}  // namespace parsimony::torch_io
