// Command-line options: functions that add them, and the options that several commands share.
#pragma once

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <variant>
#include <vector>

#include "parsimony/api/own_operators.h"
#include "parsimony/api/prune_settings.h"
#include "parsimony/base/json_reader.h"

namespace parsimony::cli {

/// Adds an option or an argument; the help calls its value `type`.
template <typename Value>
CLI::Option* add_option(CLI::App& command, const std::string& name, Value& value, const char* type,
                        const std::string& meaning) {
  return command.add_option(name, value, meaning)->type_name(type);
}

/// Adds an option for one or several fractions, such as 0.5 or 50%.
CLI::Option* add_share_option(CLI::App& command, const std::string& name, double& share,
                              const char* type, const std::string& meaning,
                              const Interval& interval);
CLI::Option* add_share_option(CLI::App& command, const std::string& name,
                              std::vector<double>& shares, const char* type,
                              const std::string& meaning, const Interval& interval);

// Validators with our messages and short descriptions: CLI11's would print the largest double.
CLI::Validator above_zero();
CLI::Validator not_below_zero();
CLI::Validator within(const Interval& interval);
/// Returns whichever of the validators above describes the interval best.
CLI::Validator in_range(const Interval& interval);
/// Accepts one of these words.
CLI::Validator any_of(const std::vector<std::string_view>& words);

/// Adds the option of a setting, which fills `settings`.
template <typename Settings>
CLI::Option* add_setting(CLI::App& command, const Field<Settings>& field, Settings& settings) {
  const std::string name = option_of(field.key);
  const std::string help = help_of(field);
  const auto add = [&](const auto& member) -> CLI::Option* {
    using Pointer = std::decay_t<decltype(member)>;
    if constexpr (std::is_same_v<Pointer, WordMember<Settings>>) {
      const auto set = [&settings, member](const std::string& word) {
        member.set(settings, std::ranges::find(member.words, word) - member.words.begin());
      };
      return command.add_option_function<std::string>(name, set, help)
          ->check(any_of({member.words.begin(), member.words.end()}))
          ->default_str(std::string(member.words[member.get(settings)]));
    } else if constexpr (std::is_same_v<Pointer, FlagMember<Settings>>) {
      const auto set = [&settings, set = member.set] { set(settings); };
      CLI::Option* flag = command.add_flag_callback(name, set, help);
      CLI::Option* other = command.get_option_no_throw(option_of(member.excludes));
      return other == nullptr ? flag : flag->excludes(other);
    } else if constexpr (std::is_same_v<Pointer, NumberMember<Settings>>) {
      const auto set = [&settings, set = member.set](int number) { set(settings, number); };
      return command.add_option_function<int>(name, set, help);
    } else if constexpr (std::is_same_v<Pointer, TextMember<Settings>>) {
      const auto set = [&settings, set = member.set, name](const std::string& text) {
        set(settings, text, name);
      };
      return command.add_option_function<std::string>(name, set, help);
    } else if constexpr (std::is_same_v<Pointer, TextsMember<Settings>>) {
      const auto set = [&settings, set = member.set, name](const std::vector<std::string>& texts) {
        set(settings, texts, name);
      };
      return command.add_option_function<std::vector<std::string>>(name, set, help);
    } else if constexpr (std::is_same_v<Pointer, bool Settings::*>) {
      return command.add_flag((field.negated ? "!" : "") + name, settings.*member, help);
    } else {
      if constexpr (std::is_same_v<Pointer, double Settings::*>) {
        if (field.as_share) {
          return add_share_option(command, name, settings.*member, "", help, field.interval);
        }
      }
      return command.add_option(name, settings.*member, help);
    }
  };
  CLI::Option* option = std::visit(add, field.member);
  if (!field.value.empty()) option->type_name(std::string(field.value));
  if (!field.group.empty()) option->group(std::string(field.group));
  if (field.separator != 0) option->delimiter(field.separator);
  if (field.fault != nullptr) option->check(CLI::Validator(field.fault, ""));
  if (std::isfinite(field.interval.lowest) && !field.as_share)
    option->check(in_range(field.interval));
  return option;
}

/// Adds the options of a table, except for those that the command has already.
template <typename Settings>
std::vector<CLI::Option*> add_settings(CLI::App& command, std::span<const Field<Settings>> table,
                                       Settings& settings) {
  std::vector<CLI::Option*> options;
  for (const Field<Settings>& field : table) {
    const bool exists = command.get_option_no_throw(option_of(field.key)) != nullptr;
    if (!exists && !field.only_in_files) options.push_back(add_setting(command, field, settings));
  }
  return options;
}

/// Adds the argument for the model.
void add_model_argument(CLI::App& command, std::string& path);

/// Adds --rules and --ort-library, which are common to all commands.
void add_own_operator_options(CLI::App& app, OwnOperators& own);

/// Adds --input.
void add_input_option(CLI::App& command, std::vector<std::string>& specs);

/// Adds --sample.
void add_sample_option(CLI::App& command, std::string& source);

/// Reads the --input options. @throws ConfigError if there are more than the graph has inputs
std::vector<InputSpec> input_specs(const std::vector<std::string>& specs, const Graph& graph);

/// Adds --threads.
void add_threads_option(CLI::App& command, std::optional<int>& threads);

/// Adds --loss with another meaning than in `prune`. @param others  words accepted in place of a
/// loss
void add_loss_option(CLI::App& command, CalibrationData& job, const std::string& of_what,
                     std::vector<std::string> others = {});

}  // namespace parsimony::cli
