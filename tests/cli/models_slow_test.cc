// Every built-in network learns a little of drawn shapes or of text, is pruned, proven and written.
#include <gtest/gtest.h>

#include "parsimony/report/ledger.h"
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

class CliLanguageModel : public testing::TestWithParam<const char*> {};

TEST_P(CliLanguageModel, LearnsAndIsPrunedWithProof) {
  if (!kHasTorch) GTEST_SKIP() << "built without libtorch";
  const Workplace place;
  std::string text;
  for (int i = 0; i < 40; ++i) text += "So long lives this, and this gives life to thee.\n";
  place.write("verse.txt", text);
  place.write("r.json", R"({"data": "text:verse.txt,length=32",
      "train": {"epochs": 3, "batch": 4, "lr": 0.003},
      "prune": {"warmup_epochs": 3, "config_list": [{"op_types": ["Linear", "Embedding"],
                                                     "sparse_ratio": 0.3}]}})");
  const Outcome outcome = place.run(std::string("train --config r.json --model ") + GetParam() +
                                    " -o o.pt --report out.json");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const LedgerPoint point = read_ledger_point(place.bytes("out.json"), "out.json");
  EXPECT_LT(point.macs.after, 0.9 * static_cast<double>(point.macs.before));
  ASSERT_TRUE(point.proof.has_value());
  EXPECT_TRUE(point.proof->holds()) << point.proof->difference << ' ' << point.proof->reason;
  EXPECT_EQ(point.after.total, 12 * 32);
  ASSERT_TRUE(point.after.perplexity.has_value());
  EXPECT_LT(*point.after.perplexity, 20) << "256 bytes, of which 20 occur";
  EXPECT_LE(*point.after.perplexity, *point.pruned.perplexity);
  EXPECT_EQ(place.run("prune o.pt -o p.pt --ratio 0.5 --input 2x9").code, 0)
      << "neither batch nor length is fixed in the file";
}

INSTANTIATE_TEST_SUITE_P(Networks, CliLanguageModel, testing::Values("gpt_tiny", "llama_tiny"));

INSTANTIATE_TEST_SUITE_P(Networks, CliBuiltIn,
                         testing::Values("cnn", "mobilenet_v2", "resnet18", "resnet20", "resnet56",
                                         "vgg16_bn", "vit_tiny"));

}  // namespace
}  // namespace parsimony::test
