// What is wrong with a command line, and what the command says to it.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "parsimony/base/errors.h"
#include "parsimony/pruners/criterion.h"
#include "tests/cli/command.h"

namespace parsimony::test {
namespace {

class CliFault : public testing::TestWithParam<Fault> {};

TEST_P(CliFault, HasItsCodeAndMessageAndWritesNothing) {
  const Workplace place;
  const Outcome outcome = place.run(GetParam().arguments);
  EXPECT_EQ(outcome.code, GetParam().code);
  EXPECT_EQ(outcome.err, std::string("parsimony: ") + GetParam().message + "\n");
  EXPECT_EQ(place.results(), std::vector<std::string>{});
}

TEST(CliCriterion, AnUnknownOneIsToldWhichThereAre) {
  const Outcome outcome = Workplace().run("prune cnn.onnx -o o.onnx --ratio 0.5 --criterion l3");
  EXPECT_EQ(outcome.code, 2);
  EXPECT_EQ(outcome.err, "parsimony: --criterion: unknown criterion \"l3\"; this version has " +
                             each_of(criterion_names()) + "\n");
}

constexpr Fault kUsageFaults[] = {
    {"prun cnn.onnx", 2,
     "unknown command \"prun\". Did you mean \"prune\"? See `parsimony --help`."},
    {"prune", 2, "IN is required. See `parsimony prune --help`."},
    {"prune cnn.onnx --ratio 0.5", 2, "--output is required. See `parsimony prune --help`."},
    {"prune cnn.onnx -o o.onnx", 2,
     "prune: nothing says how much to remove; give --config CFG.json or --ratio, for example "
     "--ratio 0.5"},
    {"prune cnn.onnx -o o.onnx --rato 0.5", 2,
     "unknown option \"--rato\". Did you mean \"--ratio\"? See `parsimony prune --help`."},
    {"prune cnn.onnx -o o.onnx --ratio 1.5", 2,
     "--ratio: found \"1.5\", expected a share in [0, 1), as 0.5 or 50%. See `parsimony prune "
     "--help`."},
    {"prune cnn.onnx -o o.onnx --ratio half", 2,
     "--ratio: found \"half\", expected a share in [0, 1), as 0.5 or 50%. See `parsimony prune "
     "--help`."},
    {"prune cnn.onnx -o o.onnx --ratio 100%", 2,
     "--ratio: found \"100%\", expected a share in [0, 1), as 0.5 or 50%. See `parsimony prune "
     "--help`."},
    {"prune cnn.onnx -o o.onnx --ratio", 2, "--ratio needs a value. See `parsimony prune --help`."},
    {"prune cnn.onnx -o o.onnx --ratio 0.5 --ratio 0.4", 2,
     "--ratio was given 2 times. See `parsimony prune --help`."},
    {"prune cnn.onnx -o o.onnx --ratio 0.5 --round-to eight", 2,
     "--round-to: found \"eight\", expected a whole number or auto. See `parsimony prune --help`."},
    {"prune cnn.onnx -o o.onnx --ratio 0.5 --batch many", 2,
     "--batch: found \"many\", expected a number above 0. See `parsimony prune --help`."},
    {"prune cnn.onnx -o o.onnx --ratio 0.5 --batch 1.5", 2,
     "--batch: found \"1.5\", expected a whole number. See `parsimony prune --help`."},
    {"prune cnn.onnx -o o.onnx --ratio 0.5 --rescale=maybe", 2,
     "--rescale takes no value. See `parsimony prune --help`."},
    {"prune cnn.onnx -o o.onnx --ratio 0.5 --exact-only --allow-mixing", 2,
     "--exact-only and --allow-mixing cannot be given together. See `parsimony prune --help`."},
    {"prune cnn.onnx -o o.onnx --ratio 0.5 --constants keep", 2,
     "--constants: found \"keep\", expected \"drop\" or \"exact\". See `parsimony prune --help`."},
    {"prune cnn.onnx -o o.onnx --ratio 0.5 --latency-retries 11", 2,
     "--latency-retries: found \"11\", expected a number in [0, 10]. See `parsimony prune "
     "--help`."},
    {"--max-memory much inspect cnn.onnx", 2,
     "--max-memory: found \"much\", expected a size, as 4G or 512M. See `parsimony inspect "
     "--help`."},
    {"--json inspect cnn.onnx", 2, "--json requires --version. See `parsimony inspect --help`."},
    {"sensitivity cnn.onnx --ratios 10%,100%", 2,
     "--ratios: found \"100%\", expected a share in [0.001, 0.999], as 0.5 or 50%. See `parsimony "
     "sensitivity --help`."},
    {"prune cnn.onnx -o o.onnx --ratio 0.5 --exclude *.mlp.*", 2,
     "--exclude: pattern \"*.mlp.*\" matches no layer of this network"},
    {"prune cnn.onnx -o o.onnx --ratio 0.5 --budget macs=5", 2,
     "--budget: an amount, as in \"macs=5\", says how much to prune, and --ratio does too; give "
     "one"},
    {"prune cnn.onnx -o o.onnx --budget macs=", 2,
     "--budget: found \"\", expected a number above 0, as 2e9, or a share of the whole, as "
     "\"50%\""},
    {"prune cnn.onnx -o o.onnx --ratio 0.5 --config c.json", 2,
     "prune: --ratio is for pruning without a config file; with --config, write it there"},
    {"prune cnn.onnx -o o.onnx --ratio 0.5 --exclude fd", 2,
     "--exclude: this network has no layer \"fd\". Did you mean \"fc\"?"},
    {"prune cnn.onnx -o o.onnx --ratio 0.5 --granularity chan", 2,
     "--granularity: found \"chan\", expected \"channel\", \"head\", \"head_dim\" or \"group\""},
    {"prune cnn.onnx -o o.onnx --ratio 0.5 --input 1x3x8", 2,
     "input \"x\" has shape [-1, 3, 8, 8], but [1, 3, 8] was given for it"},
    {"prune cnn.onnx -o o.onnx --ratio 0.5 --input 1x3x8x8 1", 2,
     "--input was given 2 times, but the model has 1 input"},
    {"prune cnn.onnx -o o.onnx --ratio 0.5 --input axb", 2,
     "--input axb: \"a\" is not a number; expected for example 1x3x32x32, 2x8:int64, :int64=16000 "
     "or NAME=1x3x32x32"},
    {"prune cnn.onnx -o o.onnx --ratio 0.5 --input 1x3x8x8:floa", 2,
     "--input 1x3x8x8:floa: unknown element type \"floa\"; expected for example 1x3x32x32, "
     "2x8:int64, :int64=16000 or NAME=1x3x32x32. Did you mean \"float32\", \"float64\" or "
     "\"float16\"?"},
    {"prune cnn.onnx -o o.onnx --ratio 0.5 --input 1x3x8x8:int64", 2,
     "input \"x\" has elements of float32, but int64 was given for it"},
    {"prune cnn.onnx -o o.onnx --ratio 0.5 --seed -1", 2,
     "--seed: found \"-1\", expected a number not below 0. See `parsimony prune --help`."},
    {"verify cnn.onnx cnn.onnx --plan p.json --inputs 0", 2,
     "--inputs: found \"0\", expected a number above 0. See `parsimony verify --help`."},
    {"prune cnn.onnx -o o.onnx --ratio 0.5 --plan o.onnx", 2,
     "--output and --plan are the same file: o.onnx"},
    {"prune cnn.onnx -o o.onnx --ratio 0.5 --plan ./cnn.onnx", 2,
     "the model and --plan are the same file: ./cnn.onnx"},
    {"prune none.onnx -o o.onnx --ratio 0.5", 4,
     "none.onnx: cannot be read: No such file or directory"},
    {"prune cnn.onnx -o none/o.onnx --ratio 0.5", 4,
     "none/o.onnx: cannot be written: No such file or directory"},
    {"prune cnn.onnx -o o.onnx --ratio 0.5 --report none/r.json", 4,
     "none/r.json: cannot be written: No such file or directory"},
    {"prune cnn.onnx -o . --ratio 0.5", 4,
     ".: cannot be written: it exists and is not a regular file"},
    {"prune cnn.onnx -o o.onnx --config none.json", 4,
     "none.json: cannot be read: No such file or directory"},
    {"inspect cnn.onnx more", 2, "unexpected argument \"more\". See `parsimony inspect --help`."},
    {"inspect /dev/null", 4, "/dev/null: cannot be read: not a regular file"},
    {"explain cnn.onnx --node c3", 2,
     "no node or weight of the network is called \"c3\". Did you mean \"c1\", \"c2\" or \"c\"?"},
    {"explain cnn.onnx --group g7", 2, "there is no group \"g7\"; there are g0, g1"},
    {"explain whole.onnx --group g0", 2,
     "there is no group \"g0\": no axis of this network can shrink"},
    {"apply cnn.onnx -o o.onnx", 2, "--plan is required. See `parsimony apply --help`."},
    {"apply cnn.onnx -o o.onnx --plan none.json", 4,
     "none.json: cannot be read: No such file or directory"},
    {"verify cnn.onnx cnn.onnx --plan none.json", 4,
     "none.json: cannot be read: No such file or directory"},
};

INSTANTIATE_TEST_SUITE_P(Usage, CliFault, testing::ValuesIn(kUsageFaults));

TEST(Cli, WithoutACommandPrintsTheHelp) {
  const Outcome outcome = Workplace().run("");
  EXPECT_EQ(outcome.code, 2);
  EXPECT_NE(outcome.out.find("explain"), std::string::npos);
  EXPECT_EQ(outcome.err, "parsimony: a command is missing. See `parsimony --help`.\n");
}

TEST(Cli, EveryCommandHasHelpWithAnExample) {
  const Workplace place;
  for (const std::string command : {"prune", "inspect", "explain", "apply", "verify", "sensitivity",
                                    "doctor", "bench", "man", "completion"}) {
    const Outcome outcome = place.run(command + " --help");
    EXPECT_EQ(outcome.code, 0);
    EXPECT_EQ(outcome.err, "");
    EXPECT_NE(outcome.out.find("Example:\n  parsimony " + command), std::string::npos)
        << outcome.out;
  }
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
