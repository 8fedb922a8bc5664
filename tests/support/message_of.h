// The message of an error.
#pragma once

#include <functional>
#include <string>

#include "parsimony/base/errors.h"

namespace parsimony::test {

/// Of the Error that the work throws; empty if it throws none.
inline std::string message_of(const std::function<void()>& work) {
  try {
    work();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

}  // namespace parsimony::test
