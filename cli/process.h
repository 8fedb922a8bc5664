// Runs another program and reads what it prints.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace parsimony::cli {

struct Finished {
  int exit_code = 0;  ///< 128 + signal if one ended it
  std::string out;
  std::string err;
};

/// Path of a program found as the shell would find it; empty if there is none.
std::optional<std::string> find_program(const std::string& name);

/// Runs `arguments[0]`, a path, without a shell; its standard input is empty.
/// @throws IoError if it cannot be started
Finished run_program(const std::vector<std::string>& arguments);

}  // namespace parsimony::cli
