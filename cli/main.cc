// The command: exceptions become a line on standard error and an exit code.
#include <cstdio>
#include <exception>
#include <new>
#include <string>

#include "parsimony/base/errors.h"
#include "parsimony/cli/app.h"
#include "parsimony/cli/command.h"
#include "parsimony/cli/terminal.h"

namespace {

using parsimony::cli::Exit;

int failed(const std::exception& error, Exit code) {
  using namespace parsimony::cli;
  const std::string name = coloured("parsimony:", Colour::kRed, Stream::kErr);
  std::fprintf(stderr, "%s %s\n", name.c_str(), error.what());
  if (code == Exit::kBug) {
    std::fputs("This is a bug of ours. Please report it, with the command and the model.\n",
               stderr);
  }
  return static_cast<int>(code);
}

}  // namespace

int main(int argc, char** argv) {
  try {
    parsimony::cli::run(argc, argv);
    return static_cast<int>(Exit::kDone);
  } catch (const parsimony::VerificationError& error) {
    return failed(error, Exit::kVerification);
  } catch (const parsimony::ConfigError& error) {
    return failed(error, Exit::kUsage);
  } catch (const parsimony::UnsupportedError& error) {
    return failed(error, Exit::kUnsupported);
  } catch (const parsimony::Error& error) {
    return failed(error, Exit::kFile);  // IoError, ModelError: both are about a file
  } catch (const std::bad_alloc&) {
    return failed(parsimony::UnsupportedError("memory is used up; --max-memory and the system's "
                                              "limits bound it"),
                  Exit::kUnsupported);
  } catch (const std::exception& error) {
    return failed(error, Exit::kBug);
  }
}
