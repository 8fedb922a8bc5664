// The command line as a whole.
#pragma once

namespace parsimony::cli {

/// Runs the command. Prints help and results; leaves errors to the caller.
/// @throws parsimony::Error
void run(int argc, char** argv);

}  // namespace parsimony::cli
