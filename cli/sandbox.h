// Limits on the process: its memory and its time, and the kernel's sandbox.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <span>
#include <string>

#include "parsimony/cli/outputs.h"

namespace parsimony::cli {

struct ProcessLimits {
  uint64_t memory = 0;  ///< bytes; 0: the system's limit
  double seconds = 0;   ///< of processor time; 0: the system's limit
  std::string sandbox = "auto";
};

/// Adds --max-memory, --max-seconds and --sandbox, which are common to all commands.
void add_limit_options(CLI::App& app, ProcessLimits& limits);

/// Limits private memory and processor time of the process. When the time is exceeded, or a library
/// aborts out of memory, the process exits with code 3. @throws UnsupportedError if the system
/// refuses
void apply(const ProcessLimits& limits);

/// Restricts this thread and the threads that it starts from now on: no sockets, no other programs,
/// and writes only to the folders of the outputs, the cache and temporary files (Landlock and
/// seccomp). Open files are not affected. @param starts_programs  the command runs user commands,
/// or communicates with processes or drivers: "auto" then does nothing, and "on" is a ConfigError
/// @throws UnsupportedError for "on" if the kernel does not support both
void enter_sandbox(const ProcessLimits& limits, std::span<const NamedFile> outputs,
                   bool starts_programs);

}  // namespace parsimony::cli
