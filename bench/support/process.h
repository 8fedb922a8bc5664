// Runs programs and functions in processes of their own, where time and memory can be told apart.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace parsimony::bench {

struct Run {
  double seconds = 0;      ///< wall clock
  double cpu_seconds = 0;  ///< user and system, all threads
  int64_t peak_bytes = 0;  ///< largest resident set, mapped files included
};

/// Runs a program; what it prints is dropped. The system counts this process's own peak as a lower
/// bound of the child's, so use `in_child` for what needs memory.
/// @throws std::runtime_error if it cannot be started or fails
Run run(const std::vector<std::string>& arguments);

/// Calls `work` in a forked process: a heap and caches of its own, as a command has them.
/// @returns the processor time of that process, in seconds. @throws std::runtime_error if it fails
double in_child(const std::function<void()>& work);

/// The `parsimony` command that was built with this program.
std::string parsimony_command();

/// This program itself.
std::string this_program();

}  // namespace parsimony::bench
