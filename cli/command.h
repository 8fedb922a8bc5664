// Shared parts of the subcommands: common options, and the functions that add a subcommand.
#pragma once

#include <CLI/CLI.hpp>
#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "parsimony/api/own_operators.h"
#include "parsimony/base/errors.h"
#include "parsimony/cli/sandbox.h"

namespace parsimony::cli {

/// Exit codes; `kBug` is everything other than parsimony::Error.
enum class Exit : int {
  kDone = 0,
  kVerification = 1,
  kUsage = 2,
  kUnsupported = 3,
  kFile = 4,
  kBug = 70,
};

struct Session {
  bool quiet = false;
  int verbosity = 0;
  bool version = false;
  bool json = false;         ///< print the version as JSON
  bool after_input = false;  ///< wait for the end of standard input
  OwnOperators own;          ///< --rules and --ort-library
  ProcessLimits limits;
  std::string command_line;        ///< as it was typed
  std::vector<std::string> words;  ///< arguments, including the program
  std::function<void()> run;       ///< set by the subcommand that was named
};

/// Each function adds one subcommand, which only parses options; `session.run` does the work.
void add_prune(CLI::App& app, Session& session);
void add_speedup(CLI::App& app, Session& session);
void add_inspect(CLI::App& app, Session& session);
void add_explain(CLI::App& app, Session& session);
void add_apply(CLI::App& app, Session& session);
void add_verify(CLI::App& app, Session& session);
void add_sensitivity(CLI::App& app, Session& session);
void add_import(CLI::App& app, Session& session);
void add_know(CLI::App& app, Session& session);
void add_export(CLI::App& app, Session& session);
void add_doctor(CLI::App& app, Session& session);
void add_train(CLI::App& app, Session& session);
void add_finetune(CLI::App& app, Session& session);
void add_sweep(CLI::App& app, Session& session);
void add_report(CLI::App& app, Session& session);
void add_bench(CLI::App& app, Session& session);
void add_man(CLI::App& app, Session& session);
void add_completion(CLI::App& app, Session& session);

/// Adds a subcommand with an example and the options of `add_options`, which `run` receives.
template <typename Options>
void add_command(CLI::App& app, Session& session, const std::string& name,
                 const std::string& description, const std::string& example,
                 void (*add_options)(CLI::App&, Options&),
                 const std::function<void(Options&, const Session&)>& run) {
  auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand(name, description);
  command->footer("Example:\n  " + example +
                  "\n\nOptions common to all commands (--rules, --ort-library, --max-memory, -q, "
                  "-v): parsimony --help");
  command->fallthrough();
  add_options(*command, *options);
  command->callback([options, run, &session] {
    session.run = [options, run, &session] { run(*options, session); };
  });
}

/// Returns the names of the program's commands.
std::vector<std::string> command_names(const CLI::App& app);

/// Prints to standard output. @throws IoError if that fails
void print(const std::string& text);

/// Writes a line of progress to standard error.
void log_line(const std::string& line);

/// Writes report.html, .md, .csv and .json of the folders' ledgers into `out`.
/// @param tensorboard  folder for event files of the trade-off; may be empty
/// @returns a summary for people. @throws IoError, ModelError, UnsupportedError
std::string write_report(const std::vector<std::string>& folders, const std::string& out,
                         const std::string& title, const std::string& tensorboard = {});

// Errors of several commands.
namespace errors {

/// A usage error; `command` may be empty.
ConfigError usage(std::string_view command, std::string_view message);
ConfigError unknown_command(std::string_view name, std::span<const std::string> known);
ConfigError unexpected(std::string_view command, std::string_view argument,
                       std::span<const std::string> known);

/// No engine runs any of the models; `reasons` has one entry per model and engine.
UnsupportedError nothing_runs(std::span<const std::string> reasons);

}  // namespace errors

}  // namespace parsimony::cli
