// The commands of the documentation run: blocks fenced as ```sh test, one after the other in one
// folder.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

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

/// A fenced block: what is behind the fence, and its text.
using Block = std::pair<std::string, std::string>;

std::vector<Block> fenced_blocks(const std::string& path) {
  std::vector<Block> blocks;
  std::ifstream file(path);
  bool inside = false;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("```")) {
      inside = !inside;
      if (inside) blocks.emplace_back(line.substr(3), "");
    } else if (inside) {
      blocks.back().second += line + "\n";
    }
  }
  return blocks;
}

/// Are these the lines of `output`, or beginnings of them?
void expect_lines(const std::string& lines, const std::string& output) {
  std::istringstream text(lines);
  for (std::string line; std::getline(text, line);) {
    EXPECT_NE(("\n" + output).find("\n" + line), std::string::npos) << line << "\n" << output;
  }
}

/// The page's rules, commands and what they print.
TEST(Guide, ItsExampleOfRulesRuns) {
  if (!kHasTorch || !has_onnx_runtime()) GTEST_SKIP() << "the proof needs both";
  const Workplace place;
  save(two_convolutions("b = acme.Swish5 (a)"), place / "model.onnx");
  std::filesystem::copy(PARSIMONY_ACME_OPERATORS, place / "libacme.so");
  place.write("typo.rules", "# Of acme.\n\noperator acme::Swish5\n  line x[n c -> y[n c]\n");
  Outcome last;
  int commands = 0;
  for (const auto& [fence, text] : fenced_blocks(PARSIMONY_SOURCE_DIR "/docs/guide/rules.md")) {
    if (fence == "rules") place.write("acme.rules", text);
    if (fence == "text") expect_lines(text, last.out + last.err);
    if (!fence.starts_with("sh ")) continue;
    last = place.shell("set -e\n" + text);
    EXPECT_EQ(last.code == 0, fence == "sh test") << text << last.err;
    ++commands;
  }
  EXPECT_EQ(commands, 4);
}

}  // namespace
}  // namespace parsimony::test
