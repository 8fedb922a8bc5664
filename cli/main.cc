// The command line as a whole; exceptions become a line on standard error and an exit code.
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <exception>
#include <map>
#include <new>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "parsimony/api/own_operators.h"
#include "parsimony/api/torch_component.h"
#include "parsimony/base/errors.h"
#include "parsimony/base/parse.h"
#include "parsimony/cli/command.h"
#include "parsimony/cli/model.h"
#include "parsimony/cli/options.h"
#include "parsimony/cli/terminal.h"
#include "parsimony/engines/onnx_runtime.h"

namespace parsimony::cli {
namespace {

/// Newer versions of CLI11 would wrap footers and remove their indentation.
template <typename Formatter>
void leave_footers_as_written(Formatter& formatter) {
  if constexpr (requires { formatter.enable_footer_formatting(false); }) {
    formatter.enable_footer_formatting(false);
  }
}

void add_options(CLI::App& app, Session& session) {
  leave_footers_as_written(*app.get_formatter());  // which the commands share
  CLI::Option* version = app.add_flag("--version", session.version, "Print the version and exit");
  app.add_flag("--json", session.json,
               "With --version: print versions as JSON, including those of the libraries")
      ->needs(version);
  app.add_flag("-q,--quiet", session.quiet, "Print only errors and requested output");
  app.add_flag("-v,--verbose", session.verbosity, "Print more");
  app.add_flag("--after-input", session.after_input,
               "Load libtorch, and read files after standard input has ended: for programs that "
               "start the command while they write the files");
  add_own_operator_options(app, session.own);
  add_limit_options(app, session.limits);
  app.require_subcommand(0, 1);  // our message lists candidates
  app.footer(
      "Exit codes: 0 done, 1 verification failed, 2 usage or configuration,\n3 unsupported, 4 file "
      "or I/O, 70 an internal error.");
  add_prune(app, session);
  add_speedup(app, session);
  add_inspect(app, session);
  add_explain(app, session);
  add_apply(app, session);
  add_verify(app, session);
  add_sensitivity(app, session);
  add_import(app, session);
  add_know(app, session);
  add_export(app, session);
  add_doctor(app, session);
  add_train(app, session);
  add_finetune(app, session);
  add_sweep(app, session);
  add_report(app, session);
  add_bench(app, session);
  add_man(app, session);
  add_completion(app, session);
}

std::vector<std::string> option_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  }
  return names;
}

/// Checks that the first word that is not part of an option is a command.
void check_command(const CLI::App& app, int argc, char** argv) {
  const std::vector<std::string> known = command_names(app);
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    if (word.starts_with('-')) {
      const CLI::Option* option = app.get_option_no_throw(std::string(word));
      if (option != nullptr && option->get_items_expected_max() > 0) ++i;  // its value
      continue;
    }
    if (std::find(known.begin(), known.end(), word) != known.end()) return;
    throw errors::unknown_command(word, known);
  }
}

/// Returns the options named in a message of CLI11, in its order.
std::vector<const CLI::Option*> named_in(const std::string& text,
                                         const std::vector<const CLI::App*>& apps) {
  const auto is_part = [&](size_t at) {
    return at < text.size() && (std::isalnum(text[at]) != 0 || text[at] == '-' || text[at] == '_');
  };
  std::map<size_t, const CLI::Option*> found;
  for (const CLI::App* app : apps) {
    for (const CLI::Option* option : app->get_options()) {
      const std::string name = option->get_name();
      const size_t at = text.find(name);
      const bool whole =
          at != std::string::npos && (at == 0 || !is_part(at - 1)) && !is_part(at + name.size());
      if (whole) found.emplace(at, option);
    }
  }
  std::vector<const CLI::Option*> options;
  for (const auto& [at, option] : found) options.push_back(option);
  return options;
}

std::string why_not_converted(const CLI::Option& option) {
  for (const std::string& text : option.results()) {
    if (!number_of<double>(text)) return "found " + in_quotes(text) + ", expected a number";
  }
  return "found " + in_quotes(CLI::detail::join(option.results(), " ")) +
         ", expected a whole number";
}

template <typename Kind>
bool is(const CLI::ParseError& error) {
  return dynamic_cast<const Kind*>(&error) != nullptr;
}

/// Describes an error in our own words: the type of CLI11's error tells what is wrong, and its text
/// which options are affected. Messages of validators are used unchanged.
std::string what_is_wrong(const CLI::ParseError& error, const std::vector<const CLI::App*>& apps) {
  const std::vector<const CLI::Option*> options = named_in(error.what(), apps);
  if (options.empty() || is<CLI::ValidationError>(error)) return error.what();
  const CLI::Option& option = *options.front();
  const std::string name = option.get_name();
  if (is<CLI::RequiredError>(error)) return name + " is required";
  if (is<CLI::RequiresError>(error)) return name + " requires " + options.back()->get_name();
  if (is<CLI::ExcludesError>(error)) {
    return name + " and " + options.back()->get_name() + " cannot be combined";
  }
  if (option.get_items_expected_max() == 0) return name + " takes no value";
  if (is<CLI::ConversionError>(error)) return name + ": " + why_not_converted(option);
  return option.count() > 1 ? str_cat(name, " was passed ", option.count(), " times")
                            : name + " requires a value";
}

/// Converts CLI11's error.
ConfigError usage_error(const CLI::App& app, const CLI::ParseError& error) {
  std::vector<const CLI::App*> apps = {&app};
  for (const CLI::App* named : app.get_subcommands()) apps.push_back(named);
  const std::string command = apps.size() == 1 ? std::string() : apps[1]->get_name();
  const std::vector<std::string> left = app.remaining(true);
  if (!is<CLI::ExtrasError>(error) || left.empty()) {
    return errors::usage(command, what_is_wrong(error, apps));
  }
  std::vector<std::string> known;
  for (const CLI::App* named : apps) {
    const std::vector<std::string> own = option_names(*named);
    known.insert(known.end(), own.begin(), own.end());
  }
  return errors::unexpected(command, left[0], known);
}

/// Returns the version, as JSON with those of the libraries loaded at run time.
std::string version_text(bool json) {
  if (!json) return "parsimony " PARSIMONY_VERSION "\n";
  nlohmann::ordered_json text;
  text["parsimony"] = PARSIMONY_VERSION;
  text["libtorch"] = has_torch_component();
  text["onnxruntime"] = nullptr;
  try {
    const runtime::OnnxRuntime library = runtime::find_onnx_runtime();
    text["onnxruntime"] = {{"version", library.version()}, {"path", library.path()}};
  } catch (const UnsupportedError&) {  // there is none
  }
  return text.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

std::string command_line(int argc, char** argv) {
  std::string text = "parsimony";
  for (int i = 1; i < argc; ++i) text += std::string(" ") + argv[i];
  return text;
}

/// Runs the command. Prints help and results; errors are handled by the caller.
/// @throws parsimony::Error
void run(int argc, char** argv) {
  before_libtorch(allow_large_pages);  // its tensors are large and short-lived
  CLI::App app("Prunes trained neural networks and proves the result.", "parsimony");
  Session session;
  session.command_line = command_line(argc, argv);
  session.words.assign(argv, argv + argc);
  add_options(app, session);
  check_command(app, argc, argv);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() != 0) throw usage_error(app, error);
    app.exit(error);  // prints the requested help or version
    print("");
    return;
  }
  if (session.version) return print(version_text(session.json));
  if (!session.run) {
    print(app.help());
    throw errors::usage({}, "a command is missing");
  }
  apply(session.limits);
  runtime::disable_telemetry();
  add_own_operators(session.own);
  std::jthread libtorch;
  if (session.after_input) {
    libtorch = loading_torch_component();
    for (char ignored = 0; read(STDIN_FILENO, &ignored, 1) > 0;) {
    }
  }
  session.run();
}

int failed(const std::exception& error, Exit code) {
  const std::string name = coloured("parsimony:", Colour::kRed, Stream::kErr);
  std::fprintf(stderr, "%s %s\n", name.c_str(), error.what());
  if (code == Exit::kBug) {
    std::fputs("This is an internal error. Please report it, with the command and the model.\n",
               stderr);
  }
  return static_cast<int>(code);
}

}  // namespace
}  // namespace parsimony::cli

int main(int argc, char** argv) {
  using parsimony::cli::Exit;
  using parsimony::cli::failed;
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
    return failed(
        parsimony::UnsupportedError("out of memory; --max-memory and the system's limits bound it"),
        Exit::kUnsupported);
  } catch (const std::exception& error) {
    return failed(error, Exit::kBug);
  }
}
