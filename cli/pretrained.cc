#include "parsimony/cli/pretrained.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <system_error>

#include "parsimony/base/errors.h"

namespace parsimony::cli {
namespace {

namespace fs = std::filesystem;

constexpr const char* kScript = R"py(
import sys
try:
    import torch, transformers
    from parsimony.directory_command import main
except ImportError as error:
    print("parsimony: a directory of transformers needs the Python package:",
          f"pip install 'parsimony-pruning[torch]' transformers ({error})", file=sys.stderr)
    sys.exit(3)
sys.exit(main(sys.argv[1:]))
)py";

bool is_pretrained(const fs::path& path) {
  std::error_code error;
  return fs::is_directory(path, error) && fs::exists(path / "config.json", error);
}

/// The words from the command on, if it is one for such directories and has one that is not its
/// output.
std::vector<std::string> words_of_directory(const std::vector<std::string>& words) {
  const auto command = std::ranges::find_if(
      words, [](const std::string& word) { return word == "prune" || word == "explain"; });
  const std::vector<std::string> rest(command, words.end());
  for (size_t i = 1; i < rest.size(); ++i) {
    const bool names_output = rest[i - 1] == "-o" || rest[i - 1] == "--output";
    if (!names_output && is_pretrained(rest[i])) return rest;
  }
  return {};
}

}  // namespace

void hand_over_pretrained(const std::vector<std::string>& words) {
  const std::vector<std::string> rest = words_of_directory(words);
  if (rest.empty()) return;
  const char* named = std::getenv("PARSIMONY_PYTHON");
  const std::string python = named == nullptr || *named == '\0' ? "python3" : named;
  std::error_code error;
  const fs::path self = fs::read_symlink("/proc/self/exe", error);
  if (!error) setenv("PARSIMONY_COMMAND", self.c_str(), /*overwrite=*/0);
  std::vector<const char*> arguments = {python.c_str(), "-c", kScript};
  for (const std::string& word : rest) arguments.push_back(word.c_str());
  arguments.push_back(nullptr);
  execvp(python.c_str(), const_cast<char* const*>(arguments.data()));
  throw UnsupportedError("a directory of transformers needs the Python package: ", python,
                         " cannot be run");
}

}  // namespace parsimony::cli
