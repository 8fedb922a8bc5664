// The message of an error.
#pragma once

#include <functional>
#include <string>

#include "parsimony/base/errors.h"

namespace parsimony::test {

/// Of the failure that the work throws; empty if it throws none.
template <typename Failure = Error>
std::string message_of(const std::function<void()>& work) {
  try {
    work();
  } catch (const Failure& error) {
    return error.what();
  }
  return "";
}

}  // namespace parsimony::test
