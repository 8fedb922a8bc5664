// Manual pages and completion scripts, made from the table of commands.
#include <algorithm>
#include <cctype>
#include <utility>
#include <vector>

#include "parsimony/base/files.h"
#include "parsimony/base/shell.h"
#include "parsimony/cli/command.h"
#include "parsimony/cli/options.h"

namespace parsimony::cli {
namespace {

std::vector<const CLI::App*> commands_of(const CLI::App& app) { return app.get_subcommands({}); }

std::vector<const CLI::Option*> options_of(const CLI::App& app, const std::string& group) {
  return app.get_options([&](const CLI::Option* option) {
    return option->nonpositional() && (group.empty() || option->get_group() == group);
  });
}

/// Returns "-o", "--output"; for a negated flag, "--no-verify".
std::vector<std::string> names_of(const CLI::Option& option) {
  std::vector<std::string> names;
  for (const std::string& name : option.get_snames()) names.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) names.push_back("--" + name);
  return names;
}

bool takes_value(const CLI::Option& option) { return option.get_items_expected_max() > 0; }

/// Returns "WHAT" of "WHAT:{drop,exact}", and the words in braces.
std::pair<std::string, std::vector<std::string>> value_of(const CLI::Option& option) {
  std::string type = option.get_type_name();
  std::vector<std::string> words;
  const size_t begin = type.find(":{");
  const size_t end = type.find('}', begin == std::string::npos ? 0 : begin);
  if (begin != std::string::npos && end != std::string::npos) {
    words = CLI::detail::split(type.substr(begin + 2, end - begin - 2), ',');
  }
  return {type.substr(0, type.find(':')), words};
}

std::string replaced(std::string text, std::string_view what, std::string_view by) {
  for (size_t at = 0; (at = text.find(what, at)) != std::string::npos; at += by.size()) {
    text.replace(at, what.size(), by);
  }
  return text;
}

std::string joined(const std::vector<std::string>& words, const std::string& gap) {
  return CLI::detail::join(words, gap);
}

/// Escapes text for roff: no line may begin with a control character.
std::string roff(const std::string& text) {
  std::string escaped = replaced(replaced(text, "\\", "\\e"), "-", "\\-");
  if (escaped.starts_with('.') || escaped.starts_with('\'')) escaped.insert(0, "\\&");
  return replaced(replaced(escaped, "\n.", "\n\\&."), "\n'", "\n\\&'");
}

std::string bold(const std::string& text) { return "\\fB" + roff(text) + "\\fR"; }
std::string italic(const std::string& text) { return "\\fI" + roff(text) + "\\fR"; }

std::string item(const std::string& what, const std::string& meaning) {
  return ".TP\n" + what + "\n" + roff(meaning) + "\n";
}

std::string item(const CLI::Option& option) {
  std::string names;
  for (const std::string& name : names_of(option))
    names += (names.empty() ? "" : ", ") + bold(name);
  if (takes_value(option)) {
    const auto [type, words] = value_of(option);
    names += " " + italic(words.empty() ? type : joined(words, "|"));
  }
  return item(names, option.get_description());
}

std::string option_sections(const CLI::App& app) {
  std::string text;
  for (const std::string& group : app.get_groups()) {
    const std::vector<const CLI::Option*> options = options_of(app, group);
    if (options.empty()) continue;
    text += ".SH " + (group == "Options" ? "OPTIONS" : roff(group)) + "\n";
    for (const CLI::Option* option : options) text += item(*option);
  }
  return text;
}

std::string head(const std::string& name, const std::string& description) {
  std::string title = name;
  std::ranges::transform(title, title.begin(), [](unsigned char c) { return std::toupper(c); });
  return ".TH " + roff(title) + " 1 \"\" \"parsimony " PARSIMONY_VERSION "\"\n.SH NAME\n" +
         roff(name) + " \\- " + roff(description) + "\n";
}

/// Returns text to be shown line by line.
std::string literal(const std::string& text) { return ".nf\n" + roff(text) + "\n.fi\n"; }

std::string page_of_program(const CLI::App& app) {
  std::string text = head(app.get_name(), app.get_description()) + ".SH SYNOPSIS\n" +
                     bold(app.get_name()) + " " + italic("COMMAND") + " [" + italic("OPTIONS") +
                     "]\n.SH COMMANDS\n";
  std::vector<std::string> pages;
  for (const CLI::App* command : commands_of(app)) {
    text += item(bold(command->get_name()), command->get_description());
    pages.push_back("\\fB" + roff(app.get_name() + "-" + command->get_name()) + "\\fR(1)");
  }
  return text + option_sections(app) + ".SH NOTES\n" + literal(app.get_footer()) +
         ".SH SEE ALSO\n" + joined(pages, ",\n") + "\n";
}

std::string page_of_command(const CLI::App& app, const CLI::App& command) {
  std::string text = head(app.get_name() + "-" + command.get_name(), command.get_description()) +
                     ".SH SYNOPSIS\n" + bold(app.get_name() + " " + command.get_name()) + " [" +
                     italic("OPTIONS") + "]";
  std::string arguments;
  for (const CLI::Option* option : command.get_options()) {
    if (!option->get_positional()) continue;
    const std::string name = italic(option->get_name(true));
    text += option->get_required() ? " " + name : " [" + name + "]";
    arguments += item(name, option->get_description());
  }
  text += "\n";
  if (!arguments.empty()) text += ".SH ARGUMENTS\n" + arguments;
  return text + option_sections(command) + ".SH NOTES\n" + literal(command.get_footer()) +
         ".SH SEE ALSO\n\\fB" + roff(app.get_name()) + "\\fR(1)\n";
}

std::vector<std::string> all_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : options_of(app, {})) {
    for (std::string& name : names_of(*option)) names.push_back(std::move(name));
  }
  return names;
}

std::string bash(const CLI::App& app) {
  const std::vector<std::string> commands = command_names(app);
  std::string options, values;
  for (const CLI::App* command : commands_of(app)) {
    const std::string& name = command->get_name();
    options += "    " + name + ") words='" + joined(all_names(*command), " ") + "' ;;\n";
    for (const CLI::Option* option : options_of(*command, {})) {
      const std::vector<std::string> words = value_of(*option).second;
      for (const std::string& of : names_of(*option)) {
        if (!takes_value(*option)) continue;
        values += "    '" + name + " " + of + "') words='" + joined(words, " ") + "' ;;\n";
      }
    }
  }
  return "# bash completion of parsimony\n"
         "_parsimony() {\n"
         "  local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]}\n"
         "  local command= words= w\n"
         "  for w in \"${COMP_WORDS[@]:1:COMP_CWORD-1}\"; do\n"
         "    case $w in " +
         joined(commands, "|") +
         ") command=$w; break ;; esac\n"
         "  done\n"
         "  case \"$command $before\" in\n" +
         values + "    *) [[ $word == -* || -z $command ]] && case $command in\n" + options +
         "    *) words='" + joined(commands, " ") + " " + joined(all_names(app), " ") +
         "' ;;\n"
         "    esac ;;\n"
         "  esac\n"
         "  COMPREPLY=($(compgen -W \"$words\" -- \"$word\"))\n"
         "}\n"
         "complete -o default -o bashdefault -F _parsimony parsimony\n";
}

/// Escapes a description for brackets within quotes.
std::string in_brackets(const std::string& text) {
  return replaced(replaced(replaced(replaced(text, "[", "("), "]", ")"), ":", "\\:"), "'", "'\\''");
}

std::string zsh_arguments(const CLI::App& app, const std::string& indent) {
  std::string text;
  for (const CLI::Option* option : options_of(app, {})) {
    const auto [type, words] = value_of(*option);
    std::string value;
    if (takes_value(*option)) {
      value = ":" + in_brackets(type.empty() ? "value" : type) + ":" +
              (words.empty() ? "_files" : "(" + joined(words, " ") + ")");
    }
    for (const std::string& name : names_of(*option)) {
      text += " \\\n" + indent + "'*" + name + "[" + in_brackets(option->get_description()) + "]" +
              value + "'";
    }
  }
  return text;
}

std::string zsh(const CLI::App& app) {
  std::string commands, cases;
  for (const CLI::App* command : commands_of(app)) {
    const std::string& name = command->get_name();
    commands += "    '" + name + ":" + in_brackets(command->get_description()) + "'\n";
    cases += "      " + name + ") _arguments" + zsh_arguments(*command, "        ") +
             " \\\n        '*:file:_files' ;;\n";
  }
  return "#compdef parsimony\n"
         "_parsimony() {\n"
         "  local state line\n"
         "  local -a commands=(\n" +
         commands +
         "  )\n"
         "  _arguments -C" +
         zsh_arguments(app, "    ") +
         " \\\n    '1: :->command' '*:: :->rest'\n"
         "  case $state in\n"
         "    command) _describe command commands ;;\n"
         "    rest) case $words[1] in\n" +
         cases +
         "    esac ;;\n"
         "  esac\n"
         "}\n"
         "if [ \"$funcstack[1]\" = _parsimony ]; then _parsimony \"$@\"; "
         "else compdef _parsimony parsimony; fi\n";
}

std::string fish_options(const CLI::App& app, const std::string& condition) {
  std::string text;
  for (const CLI::Option* option : options_of(app, {})) {
    text += "complete -c parsimony -n " + shell_word(condition);
    for (const std::string& name : option->get_snames()) text += " -s " + name;
    for (const std::string& name : option->get_lnames()) text += " -l " + name;
    if (takes_value(*option)) {
      const std::vector<std::string> words = value_of(*option).second;
      text += words.empty() ? " -r" : " -x -a " + shell_word(joined(words, " "));
    }
    text += " -d " + shell_word(option->get_description()) + "\n";
  }
  return text;
}

std::string fish(const CLI::App& app) {
  std::string text =
      "# fish completion of parsimony\n" + fish_options(app, "__fish_use_subcommand");
  for (const CLI::App* command : commands_of(app)) {
    text += "complete -c parsimony -n __fish_use_subcommand -f -a " + command->get_name() + " -d " +
            shell_word(command->get_description()) + "\n" +
            fish_options(*command, "__fish_seen_subcommand_from " + command->get_name());
  }
  return text;
}

/// Returns the manual page of the program, or of one of its commands.
std::string man_page(const CLI::App& app, const std::string& command) {
  if (command.empty()) return page_of_program(app);
  for (const CLI::App* one : commands_of(app)) {
    if (one->get_name() == command) return page_of_command(app, *one);
  }
  throw errors::unknown_command(command, command_names(app));
}

std::string completion(const CLI::App& app, const std::string& shell) {
  return shell == "bash" ? bash(app) : shell == "zsh" ? zsh(app) : fish(app);
}

struct ManOptions {
  std::string command;
  std::string out;
};

struct CompletionOptions {
  std::string shell;
};

}  // namespace

void add_man(CLI::App& app, Session& session) {
  add_command<ManOptions>(
      app, session, "man", "Prints the manual page of the program, or of a command",
      "parsimony man prune | man -l -",
      [](CLI::App& command, ManOptions& options) {
        CLI::Option* one = add_option(command, "COMMAND", options.command, "",
                                      "A command (default: the program itself)");
        add_option(command, "--out", options.out, "DIR",
                   "Write the pages of the program and all commands to this folder: parsimony.1, …")
            ->excludes(one);
      },
      [&app](const ManOptions& options, const Session&) {
        if (options.out.empty()) return print(man_page(app, options.command));
        const std::string path = options.out + "/" + app.get_name();
        write_file(path + ".1", man_page(app, {}));
        for (const std::string& name : command_names(app)) {
          write_file(path + "-" + name + ".1", man_page(app, name));
        }
      });
}

void add_completion(CLI::App& app, Session& session) {
  add_command<CompletionOptions>(
      app, session, "completion", "Prints a completion script for a shell",
      "parsimony completion bash >/etc/bash_completion.d/parsimony",
      [](CLI::App& command, CompletionOptions& options) {
        add_option(command, "SHELL", options.shell, "", "bash, zsh or fish")
            ->required()
            ->check(any_of({"bash", "zsh", "fish"}));
      },
      [&app](const CompletionOptions& options, const Session&) {
        print(completion(app, options.shell));
      });
}

}  // namespace parsimony::cli
