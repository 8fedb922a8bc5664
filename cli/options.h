// How options are added, and those that several commands share.
#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>
#include <vector>

#include "parsimony/api/own_operators.h"
#include "parsimony/api/prune.h"
#include "parsimony/base/json_reader.h"
#include "parsimony/configs/config.h"

namespace parsimony::cli {

/// Adds an option or an argument; the help calls its value `type`.
template <typename Value>
CLI::Option* add_option(CLI::App& command, const std::string& name, Value& value, const char* type,
                        const std::string& meaning) {
  return command.add_option(name, value, meaning)->type_name(type);
}

/// Adds an option for a share, 0.5 or 50%, or for several.
CLI::Option* add_share_option(CLI::App& command, const std::string& name, double& share,
                              const char* type, const std::string& meaning,
                              const Interval& interval);
CLI::Option* add_share_option(CLI::App& command, const std::string& name,
                              std::vector<double>& shares, const char* type,
                              const std::string& meaning, const Interval& interval);

// Validators whose messages are ours, with short descriptions: CLI11's would print the largest
// double.
CLI::Validator above_zero();
CLI::Validator not_below_zero();
CLI::Validator within(const Interval& interval);
/// One of these words.
CLI::Validator any_of(const std::vector<std::string_view>& words);

/// The argument that names the model.
void add_model_argument(CLI::App& command, std::string& path);

/// --latency-command and how it is run.
void add_latency_command(CLI::App& command, LatencyCommand& options, const std::string& group);

/// --onnxruntime, the path of its library, and --provider.
void add_onnxruntime_options(CLI::App& command, OnnxRuntimeChoice& choice,
                             const std::string& group = {});

/// --rules and --ort-library, which every command takes.
void add_own_operator_options(CLI::App& app, OwnOperators& own);

/// --input
void add_input_option(CLI::App& command, std::vector<std::string>& specs);

/// --sample
void add_sample_option(CLI::App& command, std::string& source);

/// Reads the --input options. @throws ConfigError if there are more than the graph has inputs
std::vector<InputSpec> input_specs(const std::vector<std::string>& specs, const Graph& graph);

/// --states and --free.
void add_interface_options(CLI::App& command, InterfaceOptions& options);

/// --threads; `text` is what was given.
void add_threads_option(CLI::App& command, std::string& text);
void add_threads_option(CLI::App& command, std::optional<int>& threads);

/// Empty for "auto", the default. @throws ConfigError
std::optional<int> parse_threads(const std::string& text);

/// --calibration, --samples, --mean and --std
void add_calibration_options(CLI::App& command, CalibrationData& job);
/// --loss. @param others  what may be said in place of a loss
void add_loss_option(CLI::App& command, CalibrationData& job, std::string text,
                     std::vector<std::string> others = {});

/// The options' settings, or the config's if the options name no data.
/// @throws ConfigError if the options contradict each other
CalibrationData resolved(CalibrationData given, const ConfigList& config);

}  // namespace parsimony::cli
