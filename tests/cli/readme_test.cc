// The commands of README.md run: blocks fenced as ```sh test, one after the other in one folder.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "tests/cli/command.h"

namespace parsimony::test {
namespace {

std::vector<std::string> fenced_commands(const std::string& path) {
  std::vector<std::string> commands;
  std::ifstream file(path);
  bool inside = false;
  for (std::string line; std::getline(file, line);) {
    if (line == "```sh test") {
      inside = true;
    } else if (line == "```") {
      inside = false;
    } else if (inside && !line.empty()) {
      // A command goes on in the next line after a backslash.
      if (!commands.empty() && commands.back().ends_with('\\')) {
        commands.back().pop_back();
        commands.back() += line;
      } else {
        commands.push_back(line);
      }
    }
  }
  return commands;
}

TEST(Readme, ItsCommandsRun) {
  const Workplace place;
  std::filesystem::create_directories(place / "examples");
  std::filesystem::copy(PARSIMONY_SOURCE_DIR "/examples/models", place / "examples/models");
  const auto commands = fenced_commands(PARSIMONY_SOURCE_DIR "/README.md");
  ASSERT_GE(commands.size(), 5U);
  for (const std::string& command : commands) {
    const Outcome outcome = place.shell(command);
    if (outcome.code == 3 && command.find(" verify ") != std::string::npos) continue;  // no runtime
    EXPECT_EQ(outcome.code, 0) << command << "\n" << outcome.err;
  }
}

}  // namespace
}  // namespace parsimony::test
