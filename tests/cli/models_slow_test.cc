// Every built-in network learns a step of drawn shapes, is pruned, proven and written.
#include <gtest/gtest.h>

#include "parsimony/report/ledger_point.h"
#include "tests/cli/command.h"

namespace parsimony::test {
namespace {

class CliBuiltIn : public testing::TestWithParam<const char*> {};

TEST_P(CliBuiltIn, LearnsAndIsPrunedWithProof) {
  if (!kHasTorch) GTEST_SKIP() << "built without libtorch";
  const Workplace place;
  place.write("r.json", R"({"data": "shapes:4,4", "train": {"epochs": 1, "batch": 4},
      "prune": {"config_list": [{"op_types": ["Conv2d", "Linear"], "sparse_ratio": 0.5}]}})");
  const Outcome outcome =
      place.run(std::string("train --config r.json --memory-format contiguous --model ") +
                GetParam() + " -o o.pt --report out.json");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const LedgerPoint point = read_ledger_point(place.bytes("out.json"), "out.json");
  EXPECT_LT(point.params.after, point.params.before);
  EXPECT_LT(point.macs.after, point.macs.before);
  ASSERT_TRUE(point.proof.has_value());
  EXPECT_TRUE(point.proof->holds()) << point.proof->difference << ' ' << point.proof->reason;
  EXPECT_EQ(point.after.total, 4);
  EXPECT_EQ(place.run("inspect o.pt --input 1x3x32x32").code, 0);
}

INSTANTIATE_TEST_SUITE_P(Networks, CliBuiltIn,
                         testing::Values("cnn", "mobilenet_v2", "resnet18", "resnet20", "resnet56",
                                         "vgg16_bn", "vit_tiny"));

}  // namespace
}  // namespace parsimony::test
