// Limits on the process: its memory and its time, and the kernel's sandbox.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <span>
#include <string>

#include "parsimony/cli/outputs.h"

namespace parsimony::cli {

struct ProcessLimits {
  uint64_t memory = 0;  ///< bytes; 0: as the system says
  double seconds = 0;   ///< of processor time; 0: as the system says
  std::string sandbox = "auto";
};

/// --max-memory, --max-seconds and --sandbox, which every command takes.
void add_limit_options(CLI::App& app, ProcessLimits& limits);

/// Bounds private memory and processor time of the process. When the time is over, or a library
/// aborts for want of memory, the process ends with exit code 3. @throws UnsupportedError if the
/// system refuses
void apply(const ProcessLimits& limits);

/// From here on this thread and those that it starts open no socket, start no program, and write
/// only in the folders of the outputs, the cache and the folder for temporary files (Landlock and
/// seccomp). Open files stay as they are.
/// @param starts_programs  the command runs some of the user's, or talks to other processes or
/// drivers: then "auto" leaves it alone, and "on" is a ConfigError
/// @throws UnsupportedError for "on" where the kernel lacks one of the two
void enter_sandbox(const ProcessLimits& limits, std::span<const NamedFile> outputs,
                   bool starts_programs);

}  // namespace parsimony::cli
