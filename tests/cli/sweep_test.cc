// `sweep` on drawn shapes: what it trains, and what it leaves out.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/cli/background.h"
#include "tests/cli/command.h"
#include "tests/cli/sweep_place.h"

namespace parsimony::test {
namespace {

class CliSweep : public testing::Test {
 protected:
  void SetUp() override {
    if (!kHasTorch) GTEST_SKIP() << "built without libtorch";
  }

  SweepPlace place_;
};

TEST_F(CliSweep, MeasuresEveryPointByACommand) {
  place_.recipe(R"("sparsity": [0.5])");
  const Outcome outcome = place_.sweep(
      "--out s --metric 'wc -c < {model}:min' --metric 'test -n \"$(echo {model} | grep "
      "nothing)\"'");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const Json report = place_.report("s");
  ASSERT_EQ(report.at("points").size(), 2U);
  for (const Json& point : report.at("points")) {
    const Json& metrics = point.at("metrics");
    EXPECT_EQ(metrics[0].at("name"), "wc -c < {model}");
    EXPECT_TRUE(metrics[0].at("lower_is_better"));
    const auto bytes = point.at("bytes").at("after").get<double>();
    EXPECT_NEAR(metrics[0].at("value").get<double>(), bytes, 0.01 * bytes) << "of the file";
    EXPECT_TRUE(metrics[1].at("value").is_null());
    EXPECT_NE(metrics[1].at("failure").get<std::string>().find("exit code 1"), std::string::npos);
  }
  EXPECT_NE(place_.bytes("s/report.html").find("wc -c &lt; {model}"), std::string::npos);
  EXPECT_EQ(place_.sweep("--out t --metric psnr").err,
            "parsimony: --metric requires a command with {model}. See `parsimony sweep --help`.\n");
}

TEST_F(CliSweep, ShowsWhatAMetricPrintsAndDraws) {
  place_.recipe(R"("sparsity": [0.5])");
  const Outcome outcome = place_.sweep(
      "--out s --metric 'printf \"\\377\\330\\377drawn\" > {picture}; test -s {model}; echo "
      "two\\<lines; echo 5'");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const Json metric = place_.report("s").at("points")[0].at("metrics")[0];
  EXPECT_EQ(metric.at("output"), "two<lines\n5\n");
  EXPECT_EQ(metric.at("picture"), "data:image/jpeg;base64,/9j/ZHJhd24=");
  const std::string page = place_.bytes("s/report.html");
  EXPECT_NE(page.find("<h2 id=\"examples-title\">Examples</h2>"), std::string::npos);
  EXPECT_NE(page.find("two&lt;lines"), std::string::npos);
  EXPECT_NE(page.find("src=\"data:image/jpeg;base64,/9j/ZHJhd24=\""), std::string::npos);
}

TEST_F(CliSweep, TrainsEveryPointAndTheDenseNetworkOnceForEverySeed) {
  place_.recipe(R"("sparsity": [0, 0.5, 0.5], "criterion": ["l1", "l2"], "seed": [4, 5])");
  const Outcome outcome = place_.sweep("--out s");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(place_.points("s"),
            (Names{"l1 0.5 4", "l1 0.5 5", "l2 0.5 4", "l2 0.5 5", "none 0 4", "none 0 5"}));
  EXPECT_EQ(lines_with(outcome.out, "note:"), "");
  const Json report = place_.report("s");
  for (const Json& point : report.at("points")) {
    if (point.at("point").at("sparsity") == 0) continue;
    EXPECT_EQ(point.at("compared").at("with"), "dense");
    EXPECT_TRUE(point.at("proof").at("ran"));
  }
  EXPECT_EQ(place_.files("s/models", ".pt"), 6);
  EXPECT_EQ(place_.files("s/claims", ""), 0);
  EXPECT_EQ(place_.files("s/checkpoints", ""), 2) << "the warm-up of each seed";

  const std::string ledger = place_.bytes("s/ledger.jsonl");
  const Outcome again = place_.sweep("--out s");
  EXPECT_EQ(again.code, 0) << again.err;
  EXPECT_EQ(again.err, "");
  EXPECT_EQ(place_.bytes("s/ledger.jsonl"), ledger);
}

TEST_F(CliSweep, NeedsARecipeThatSweeps) {
  const Outcome outcome = place_.run("sweep --config none.json --out s");
  EXPECT_EQ(outcome.code, 4);
}

struct Launch {
  std::map<std::string, std::string> environment;
  const char* part;
};

void PrintTo(const Launch& launch, std::ostream* out) {
  for (const auto& [name, value] : launch.environment) *out << name << '=' << value << ' ';
}

class CliShard : public testing::TestWithParam<Launch> {};

TEST_P(CliShard, IsReadFromTheEnvironment) {
  const SweepPlace place;
  place.recipe(R"("sparsity": [0.5])");
  std::map<std::string, std::string> environment = GetParam().environment;
  environment["PARSIMONY_TORCH_COMPONENT"] = PARSIMONY_FAKE_COMPONENT;
  const Outcome outcome = place.run("sweep --config r.json --out s", environment);
  EXPECT_EQ(lines_with(outcome.err, "part "), GetParam().part) << outcome.err;
}

const Launch kLaunches[] = {
    {{}, ""},
    {{{"SLURM_ARRAY_TASK_ID", "3"}, {"SLURM_ARRAY_TASK_COUNT", "8"}}, "part 4 of 8\n"},
    {{{"SLURM_ARRAY_TASK_ID", "3"}, {"SLURM_ARRAY_TASK_COUNT", "8"}, {"SLURM_ARRAY_TASK_MIN", "1"}},
     "part 3 of 8\n"},
    {{{"SLURM_ARRAY_TASK_ID", "9"}, {"SLURM_ARRAY_TASK_COUNT", "8"}}, ""},  // with a stride
    {{{"OMPI_COMM_WORLD_RANK", "0"}, {"OMPI_COMM_WORLD_SIZE", "4"}}, "part 1 of 4\n"},
    {{{"PMI_RANK", "3"}, {"PMI_SIZE", "4"}}, "part 4 of 4\n"},
    {{{"SLURM_PROCID", "1"}, {"SLURM_STEP_NUM_TASKS", "4"}}, "part 2 of 4\n"},
    {{{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "4"}}, ""},  // a batch script: one process
    {{{"PMI_RANK", "x"}, {"PMI_SIZE", "4"}}, ""},
};

INSTANTIATE_TEST_SUITE_P(Launchers, CliShard, testing::ValuesIn(kLaunches));

}  // namespace
}  // namespace parsimony::test
