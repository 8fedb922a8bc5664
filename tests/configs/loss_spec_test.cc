#include <gtest/gtest.h>

#include "parsimony/base/errors.h"
#include "parsimony/configs/recipe.h"

namespace parsimony {
namespace {

TEST(LossSpecs, AreOneForAllOrOneForEachOutput) {
  const std::vector<LossTerm> all = parse_losses("huber:delta=0.5:weight=2");
  ASSERT_EQ(all.size(), 1U);
  EXPECT_EQ(all[0].output, "");
  EXPECT_EQ(all[0].kind, LossKind::kHuber);
  EXPECT_EQ(all[0].delta, 0.5);
  EXPECT_EQ(all[0].weight, 2);

  const std::vector<LossTerm> each =
      parse_losses("Call:0=l1,Call:1=cross_entropy:ignore=255,x=ctc:blank=3");
  ASSERT_EQ(each.size(), 3U);
  EXPECT_EQ(each[0].output, "Call:0");
  EXPECT_EQ(each[0].kind, LossKind::kL1);
  EXPECT_EQ(each[1].output, "Call:1");
  EXPECT_EQ(each[1].ignore, 255);
  EXPECT_EQ(each[2].blank, 3);
  EXPECT_EQ(name_of(each[1].kind), "cross_entropy");
}

TEST(LossSpecs, RefuseWhatMeansNothing) {
  for (const char* text :
       {"", "hubre", "huber:delta=0", "huber:delta=", "mse:delta=1", "l1:weight=-1", "=mse",
        "a=mse,a=l1", "mse,l1", "a=mse,l1", "ctc:blank=-1", "cross_entropy:ignore=x", "bce:"}) {
    EXPECT_THROW(parse_losses(text), ConfigError) << text;
  }
}

}  // namespace
}  // namespace parsimony
