// Commands that need no libtorch do not load it.
#include <gtest/gtest.h>

#include "tests/cli/command.h"

namespace parsimony::test {
namespace {

/// What the dynamic linker opens during the command.
std::string libraries_of(const Workplace& place, const std::string& arguments) {
  const Outcome outcome = place.shell("parsimony " + arguments, {{"LD_DEBUG", "files"}});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  return outcome.err;
}

class Startup : public testing::TestWithParam<const char*> {};

TEST_P(Startup, DoesNotLoadLibtorch) {
  const Workplace place;
  const std::string libraries = libraries_of(place, GetParam());
  EXPECT_NE(libraries.find("libstdc++"), std::string::npos) << "the linker tells nothing";
  EXPECT_EQ(libraries.find("libtorch"), std::string::npos);
  EXPECT_EQ(libraries.find("parsimony_torch"), std::string::npos);
}

INSTANTIATE_TEST_SUITE_P(
    Commands, Startup,
    testing::Values("--help", "--version", "inspect cnn.onnx", "explain cnn.onnx",
                    "prune cnn.onnx -o small.onnx --ratio 0.5 --no-verify --plan p.json"));

}  // namespace
}  // namespace parsimony::test
