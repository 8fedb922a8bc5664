// Commands of the user's, run by the shell.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace parsimony {

/// The outcome of a shell command: what it printed, and whether it succeeded.
struct ShellOutcome {
  std::string output;      ///< standard output; at most the last 128 kB
  std::string failure;     ///< "exit code 1", "ended by signal 9: Killed"; empty: none
  bool timed_out = false;  ///< then `failure` says so too
};

/// Runs it by sh, in a process group of its own; standard error goes through. After `seconds` the
/// group is stopped.
ShellOutcome run_shell(const std::string& command, double seconds);

/// `text` as one word of the shell: 'it'\''s'.
std::string shell_word(std::string_view text);

/// `command` with `path` in every place of `name`, which is "{model}" for example: as a word of its
/// own, or within the quotes that the place is in, as their text.
std::string with_path(std::string_view command, std::string_view name, const std::string& path);

/// The last word of a text that is a finite number; what separates words are white space and
/// punctuation such as "=", ":", "%" and brackets.
std::optional<double> last_number(std::string_view text);

}  // namespace parsimony
