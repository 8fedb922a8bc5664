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
sys.path[:] = [folder for folder in sys.path if folder]  # not where the command was started
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

}  // namespace

void hand_over_pretrained(std::string_view command, const std::string& model,
                          const Session& session) {
  if (!is_pretrained(model)) return;
  const char* named = std::getenv("PARSIMONY_PYTHON");
  const std::string python = named == nullptr || *named == '\0' ? "python3" : named;
  std::error_code error;
  const fs::path self = fs::read_symlink("/proc/self/exe", error);
  if (!error) setenv("PARSIMONY_COMMAND", self.c_str(), /*overwrite=*/0);
  std::vector<const char*> arguments = {python.c_str(), "-c", kScript};
  const auto first = std::ranges::find(session.words, command);
  for (auto word = first; word != session.words.end(); ++word) arguments.push_back(word->c_str());
  if (session.quiet) arguments.push_back("-q");
  arguments.push_back(nullptr);
  execvp(python.c_str(), const_cast<char* const*>(arguments.data()));
  throw UnsupportedError("a directory of transformers needs the Python package: ", python,
                         " cannot be run");
}

}  // namespace parsimony::cli
