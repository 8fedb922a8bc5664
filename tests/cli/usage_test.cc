// What is wrong with a command line, and what the command says to it.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "parsimony/base/errors.h"
#include "parsimony/pruners/criterion.h"
#include "tests/cli/command.h"

namespace parsimony::test {
namespace {

TEST(CliMessages, Usage) { expect_messages("usage", Workplace()); }
TEST(CliMessages, Help) { expect_messages("help", Workplace()); }

TEST(CliCriterion, AnUnknownOneIsToldWhichThereAre) {
  const Outcome outcome = Workplace().run("prune cnn.onnx -o o.onnx --ratio 0.5 --criterion l3");
  EXPECT_EQ(outcome.code, 2);
  EXPECT_EQ(outcome.err, "parsimony: --criterion: unknown criterion \"l3\"; this version has " +
                             each_of(criterion_names()) + "\n");
}

TEST(Cli, WithoutACommandPrintsTheHelp) {
  const Outcome outcome = Workplace().run("");
  EXPECT_EQ(outcome.code, 2);
  EXPECT_NE(outcome.out.find("explain"), std::string::npos);
  EXPECT_EQ(outcome.err, "parsimony: a command is missing. See `parsimony --help`.\n");
}

TEST(Cli, TellsItsVersion) {
  const Outcome outcome = Workplace().run("--version");
  EXPECT_EQ(outcome.code, 0);
  EXPECT_TRUE(outcome.out.starts_with("parsimony ")) << outcome.out;
}

TEST(Cli, TellsWhatItRunsOnAsJson) {
  const Workplace place;
  const nlohmann::json json = nlohmann::json::parse(place.run("--version --json").out);
  EXPECT_EQ("parsimony " + json["parsimony"].get<std::string>() + "\n", place.run("--version").out);
  EXPECT_EQ(json["libtorch"], kHasTorch);
  EXPECT_EQ(json["onnxruntime"].is_object(), has_onnx_runtime());
}

TEST(Cli, EveryCommandHasAManualPage) {
  const Workplace place;
  const Outcome whole = place.run("man");
  EXPECT_EQ(whole.code, 0) << whole.err;
  EXPECT_TRUE(whole.out.starts_with(".TH PARSIMONY 1")) << whole.out;
  EXPECT_NE(whole.out.find("\\fBsensitivity\\fR"), std::string::npos) << whole.out;
  const Outcome page = place.run("man prune");
  EXPECT_NE(page.out.find("\n.TP\n\\fB\\-o\\fR, \\fB\\-\\-output\\fR \\fIOUT\\fR\n"),
            std::string::npos)
      << page.out;
  EXPECT_NE(page.out.find("\\fIdrop|exact\\fR"), std::string::npos) << page.out;
  EXPECT_EQ(place.run("man prun").err,
            "parsimony: unknown command \"prun\". Did you mean \"prune\"? See `parsimony "
            "--help`.\n");
}

TEST(Cli, BashCompletesCommandsOptionsAndValues) {
  const Workplace place;
  const auto completed = [&](const std::string& words) {
    return place
        .shell("bash -c 'source <(parsimony completion bash); COMP_WORDS=(" + words +
               "); COMP_CWORD=$((${#COMP_WORDS[@]}-1)); _parsimony; echo ${COMPREPLY[*]}'")
        .out;
  };
  EXPECT_EQ(completed("parsimony pru"), "prune\n");
  EXPECT_EQ(completed("parsimony prune --rat"), "--ratio\n");
  EXPECT_EQ(completed("parsimony prune a.onnx --constants e"), "exact\n");
  EXPECT_EQ(completed("parsimony prune --config c"), "\n");  // the shell's own: files
  EXPECT_EQ(completed("parsimony --vers"), "--version\n");
  for (const std::string shell : {"zsh", "fish"}) {
    const Outcome outcome = place.run("completion " + shell);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_NE(outcome.out.find("round-to"), std::string::npos) << outcome.out;
  }
}

/// The model is there once standard input ends, not before.
TEST(Cli, MayWaitForTheEndOfItsInput) {
  const Workplace place;
  const Outcome outcome = place.shell(
      "{ sleep 0.3; cp cnn.onnx late.onnx; } | parsimony --after-input inspect late.onnx");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_NE(outcome.out.find("c1"), std::string::npos) << outcome.out;
}

TEST(Cli, AFullDiskIsAnError) {
  const Outcome outcome = Workplace().shell("parsimony inspect cnn.onnx >/dev/full");
  EXPECT_EQ(outcome.code, 4);
  EXPECT_EQ(outcome.err,
            "parsimony: standard output: cannot be written: No space left on device\n");
}

TEST(Cli, TextThatIsNotForATerminalHasNoColours) {
  const Workplace place;
  const Outcome outcome = place.run("prune cnn.onnx -o o.onnx --ratio 0.5; parsimony nothing");
  EXPECT_EQ((outcome.out + outcome.err).find('\033'), std::string::npos);
}

}  // namespace
}  // namespace parsimony::test
