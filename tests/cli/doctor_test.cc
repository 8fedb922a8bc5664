// `parsimony doctor`, and the border to the component that it crosses.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/cli/command.h"

namespace parsimony::test {
namespace {

const std::map<std::string, std::string> kAbsent = {
    {"PARSIMONY_TORCH_COMPONENT", "/none/parsimony_torch.so"}};

/// The environment that loads the stand-in, with more on top.
std::map<std::string, std::string> fake(std::map<std::string, std::string> more = {}) {
  more["PARSIMONY_TORCH_COMPONENT"] = PARSIMONY_FAKE_COMPONENT;
  return more;
}

TEST(Doctor, WithoutTheComponentTellsWhatItCan) {
  const Outcome outcome = Workplace().run("doctor", kAbsent);
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_NE(lines_with(outcome.out, "processor"), "");
  EXPECT_NE(lines_with(outcome.out, "cores"), "");
  EXPECT_NE(outcome.out.find("requires the libtorch component, which was not found at /none/"),
            std::string::npos)
      << outcome.out;
}

TEST(Doctor, PrintsOneJsonObject) {
  const Outcome outcome = Workplace().run("doctor --json", kAbsent);
  const auto json = nlohmann::json::parse(outcome.out);
  EXPECT_GE(json.at("cores").at("usable").get<int>(), 1);
  EXPECT_TRUE(json.at("torch").is_null());
  EXPECT_TRUE(json.contains("not_measured"));
  EXPECT_GE(json.at("findings").size(), 3U);
}

TEST(Doctor, MeasuresWhereThereIsTheComponent) {
  if (!PARSIMONY_HAS_TORCH) GTEST_SKIP() << "built without libtorch";
  const Outcome outcome = Workplace().run("doctor --json");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const auto json = nlohmann::json::parse(outcome.out);
  EXPECT_GT(json.at("torch").at("product_gflops").get<double>(), 0);
  EXPECT_FALSE(json.at("torch").at("steps").empty());
  EXPECT_FALSE(json.contains("not_measured"));
}

struct Crossing {
  const char* error;
  int code;
  const char* message;
};

class Border : public testing::TestWithParam<Crossing> {};

TEST_P(Border, ErrorsPassAsWhatTheyAre) {
  const Outcome outcome = Workplace().run("doctor", fake({{"FAKE_ERROR", GetParam().error}}));
  EXPECT_EQ(outcome.code, GetParam().code);
  EXPECT_EQ(lines_with(outcome.err, "parsimony:"),
            "parsimony: " + std::string(GetParam().message) + "\n");
}

INSTANTIATE_TEST_SUITE_P(Errors, Border,
                         testing::Values(Crossing{"ConfigError", 2, "of the configuration"},
                                         Crossing{"VerificationError", 1, "of the proof"},
                                         Crossing{"ShapeError", 4, "of a shape"},
                                         Crossing{"runtime_error", 70, "unforeseen"}));

TEST(Component, OfAnotherVersionIsRefused) {
  const Outcome outcome = Workplace().run("doctor --json", fake({{"FAKE_VERSION", "1"}}));
  EXPECT_NE(outcome.out.find("it belongs to parsimony "), std::string::npos) << outcome.out;
}

TEST(Component, OfAnotherBuildIsRefused) {
  const Outcome outcome = Workplace().run("doctor --json", fake({{"FAKE_INTERFACE", "1"}}));
  EXPECT_NE(outcome.out.find("it belongs to another build of parsimony "), std::string::npos)
      << outcome.out;
}

TEST(Component, ThatIsNoneIsRefused) {
  const Workplace place;
  place.write("parsimony_torch.so", "no library");
  const Outcome outcome =
      place.run("doctor", {{"PARSIMONY_TORCH_COMPONENT", place / "parsimony_torch.so"}});
  EXPECT_NE(outcome.out.find("cannot be used: "), std::string::npos) << outcome.out;
}

TEST(Component, WaitingThreadsSleepUnlessTheUserSaysOtherwise) {
  const Workplace place;
  const Outcome ours = place.run("doctor", fake({{"OMP_WAIT_POLICY", ""}, {"GOMP_SPINCOUNT", ""}}));
  EXPECT_NE(ours.out.find("OMP_WAIT_POLICY=PASSIVE"), std::string::npos) << ours.out;
  const Outcome theirs = place.run("doctor", fake({{"OMP_WAIT_POLICY", "ACTIVE"}}));
  EXPECT_NE(theirs.out.find("OMP_WAIT_POLICY=ACTIVE"), std::string::npos) << theirs.out;
}

}  // namespace
}  // namespace parsimony::test
