// What the subcommands share: common options, and how a subcommand is added.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <string>
#include <vector>

#include "parsimony/graph/infer.h"

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
  std::string command_line;        ///< as it was typed
  std::vector<std::string> words;  ///< arguments, including the program
  std::function<void()> run;       ///< set by the subcommand that was named
};

/// Each adds one subcommand, which only reads options; `session.run` does the work.
void add_prune(CLI::App& app, Session& session);
void add_speedup(CLI::App& app, Session& session);
void add_inspect(CLI::App& app, Session& session);
void add_explain(CLI::App& app, Session& session);
void add_apply(CLI::App& app, Session& session);
void add_verify(CLI::App& app, Session& session);
void add_sensitivity(CLI::App& app, Session& session);
void add_export(CLI::App& app, Session& session);
void add_doctor(CLI::App& app, Session& session);
void add_train(CLI::App& app, Session& session);
void add_finetune(CLI::App& app, Session& session);
void add_sweep(CLI::App& app, Session& session);
void add_report(CLI::App& app, Session& session);
void add_bench(CLI::App& app, Session& session);

/// Adds a subcommand with its example and the common options.
CLI::App* add_command(CLI::App& app, const std::string& name, const std::string& description,
                      const std::string& example);

/// The option --input, shared by several commands.
void add_input_option(CLI::App& command, std::vector<std::string>& specs);

/// Reads the --input options. @throws ConfigError if there are more than the graph has inputs
std::vector<InputSpec> input_specs(const std::vector<std::string>& specs, const Graph& graph);

/// Prints to standard output. @throws IoError if that fails
void print(const std::string& text);

}  // namespace parsimony::cli
