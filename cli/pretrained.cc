#include "parsimony/cli/pretrained.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <system_error>

#include "parsimony/base/errors.h"
#include "parsimony/base/files.h"
#include "parsimony/base/json_reader.h"

namespace parsimony::cli {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kConfig = "config.json";
constexpr std::string_view kModules = "modules.json";

constexpr const char* kScript = R"py(
import sys
sys.path[:] = [folder for folder in sys.path if folder]  # not where the command was started
try:
    import torch, transformers
    from parsimony.directory_command import main
except ImportError as error:
    needed = f"the Python package: pip install 'parsimony-pruning[torch]' transformers ({error})"
    if sys.argv[1] == "inspect":  # which has listed the tensors
        print("note: what may leave is not known without", needed)
        sys.exit(0)
    print("parsimony: a directory of transformers needs", needed, file=sys.stderr)
    sys.exit(3)
sys.exit(main(sys.argv[1:]))
)py";

}  // namespace

bool is_pretrained(const std::string& path) {
  std::error_code error;
  if (!fs::is_directory(path, error)) return false;
  return fs::exists(fs::path(path) / kConfig, error) ||
         fs::exists(fs::path(path) / kModules, error);
}

std::string folder_of_class(const std::string& directory) {
  const fs::path modules = fs::path(directory) / kModules;
  std::error_code error;
  if (!fs::exists(modules, error)) return directory;
  const std::string text = read_file(modules);
  const JsonDocument document(text, modules.string(), throw_as<ModelError>);
  for (const JsonReader module : document.root().list()) {
    const fs::path place = module.at("path").text();
    const bool leaves = std::ranges::find(place, "..") != place.end();
    if (place.is_absolute() || leaves) {
      module.at("path").fail("expected a path within the directory");
    }
    const fs::path folder = fs::path(directory) / place;
    if (!fs::exists(folder / kConfig, error)) continue;
    const std::string config = read_file(folder / kConfig);
    if (config.find("\"architectures\"") != std::string::npos) return folder;
  }
  return directory;
}

void hand_over_pretrained(std::string_view command, const std::string& model,
                          const Session& session) {
  if (!is_pretrained(model)) return;
  const std::string named = environment("PARSIMONY_PYTHON");
  const std::string python = named.empty() ? "python3" : named;
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
