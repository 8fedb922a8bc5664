// One operator of TorchScript between two layers: the channels that pass it are removed, and the
// outputs are those of the masked original.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <ostream>

#include "tests/torch_io/script_support.h"

namespace parsimony::test {
namespace {

using torch::jit::Module;

struct Between {
  const char* name;
  const char* body;  ///< changes y[1 8 6 6]
  int64_t kept = 4;  ///< of the eight channels
};

void PrintTo(const Between& one, std::ostream* out) { *out << one.name; }

const Between kBetween[] = {
    {"Atan2", "    y = torch.atan2(y, torch.abs(y) + 1.0)\n"},
    {"Atan2OfBoth", "    y = torch.atan2(y, y - 0.25)\n"},
    {"IndexAdd", "    y.index_add_(3, torch.tensor([0]), y[:, :, :, 1:2].clone())\n"},
    {"IndexCopy", "    y = torch.index_copy(y, 2, torch.tensor([3, 0]), y[:, :, 1:3])\n"},
    {"IndexFill", "    y.index_fill_(3, torch.tensor([0, 2]), 2.5)\n"},
    {"ScatterNumber", "    y = y.scatter_(3, torch.argmax(y, 3, True), 0.5)\n"},
    {"SelectRow", "    y[:, :, 0] = 1.0\n"},
    {"SelectChannel", "    y[:, 0] = 0.0\n", 5},
    {"FillSlice", "    y[:, :, 1:3].fill_(2.0)\n"},
    {"ComputedGroups",
     "    y = torch.conv2d(y, self.d, None, [1, 1], [1, 1], [1, 1], y.size(1))\n"},
    {"ComputedWindow", "    y = y - torch.avg_pool2d(y, [y.size(2), y.size(3)])\n"},
    {"Fold",
     "    y = torch.col2im(torch.im2col(y, [3, 3], [1, 1], [1, 1], [1, 1]), [6, 6], [3, 3], "
     "[1, 1], [1, 1], [1, 1])\n"},
    {"StridedMeans",
     "    y = y + torch.as_strided(y.mean([0, 2, 3], True), [1, 8, 1, 1], [8, 1, 8, 8])\n"},
    {"Rotated", "    y = y + torch.rot90(y, 1, [2, 3])\n"},
    {"Differences", "    y = torch.diff(y, 1, 3)\n"},
    {"DifferencesFrom", "    y = torch.diff(y, 1, 3, y[:, :, :, 2:3], y[:, :, :, :1])\n"},
    {"Distance", "    y = y * torch.pairwise_distance(y, y * 2.0, 2.0, 1e-6, True)\n"},
    {"FirstChannelsShape", "    y = y + torch.ones_like(y[:, :1])\n"},
    {"CatOfNothing", "    y = torch.cat([torch.zeros([0]), y], -3)\n"},
    {"CatOfNothingOnBothSides", "    y = torch.cat([y.new_zeros([0]), y, torch.zeros([0])], 1)\n"},
    {"ConcatOfNothing", "    y = torch.concat([y, y.new_zeros([0]), y * 2.0], -1)\n"},
    {"HstackOfNothing", "    y = torch.hstack([y, torch.zeros([0])])\n"},
    {"NothingMakesIntegersReal",
     "    y = y + torch.cat([torch.zeros([0]), torch.arange(6)], -1)\n"},
    {"CatOfNothingAtAll",
     "    y = y + torch.sum(torch.cat([torch.zeros([0]), torch.zeros([0])], -1))\n"},
    {"FirstRowsSize", "    y = y * torch.full([y[:, 0].size(1), 1], 0.5)\n"},
};

Module with_between(const Between& one) {
  at::manual_seed(4);
  return scripted(
      "def forward(self, x):\n    y = torch.conv2d(x, self.a, self.b, [1, 1], [1, 1])\n" +
          std::string(one.body) + "    return torch.conv2d(y, self.c)\n",
      {{"a", at::randn({8, 3, 3, 3})},
       {"b", at::randn({8})},
       {"c", at::randn({4, 8, 1, 1})},
       {"d", at::randn({8, 1, 3, 3})}});
}

class Spellings : public testing::TestWithParam<Between> {};

TEST_P(Spellings, ChannelsPass) {
  const Pruned pruned = prune(with_between(GetParam()), {at::randn({1, 3, 6, 6})});
  ASSERT_EQ(pruned.pruning.plan.groups.size(), 1U) << pruned.dump;
  EXPECT_LE(pruned.difference, 1e-5) << pruned.dump;
  EXPECT_LE(pruned.misread.value_or(0), 1e-5) << pruned.dump;
  EXPECT_EQ(pruned.small.attr("a").toTensor().size(0), GetParam().kept) << pruned.dump;
  EXPECT_EQ(pruned.small.attr("c").toTensor().size(1), GetParam().kept);
}

INSTANTIATE_TEST_SUITE_P(All, Spellings, testing::ValuesIn(kBetween),
                         [](const auto& one) { return std::string(one.param.name); });

Module bags(const std::string& mode) {
  at::manual_seed(4);
  return scripted(
      "def forward(self, tokens, begins):\n"
      "    bags, _, _, _ = torch.embedding_bag(self.table, tokens, begins, False, " +
          mode + ", False, None)\n    return torch.linear(bags, self.c)\n",
      {{"table", at::randn({20, 8})}, {"c", at::randn({3, 8})}});
}

/// The bags are not equally long, and one is empty.
TEST(EmbeddingBags, AreSumsAndMeans) {
  for (const char* mode : {"0", "1"}) {
    const Pruned pruned =
        prune(bags(mode), {at::randint(20, {10}, at::kLong), at::tensor({0, 4, 4, 5}, at::kLong)});
    EXPECT_EQ(pruned.pruning.plan.groups.size(), 1U) << pruned.dump;
    EXPECT_LE(pruned.difference, 1e-5) << pruned.dump;
    EXPECT_LE(pruned.misread.value_or(0), 1e-5) << pruned.dump;
    EXPECT_EQ(pruned.small.attr("table").toTensor().sizes(), (Shape{20, 4}));
  }
}

TEST(EmbeddingBags, OfMaximaStay) {
  const Pruned pruned =
      prune(bags("2"), {at::randint(20, {10}, at::kLong), at::tensor({0, 4, 5}, at::kLong)});
  EXPECT_TRUE(pruned.pruning.plan.groups.empty()) << pruned.dump;
}

/// The groups were as many as the channels by half, and stay so many.
TEST(ComputedNumbers, StayAsTheyWere) {
  at::manual_seed(4);
  const Module net = scripted(R"(
def forward(self, x):
    y = torch.conv2d(x, self.a)
    y = torch.conv2d(y, self.d, None, [1, 1], [0, 0], [1, 1], y.size(1) // 4)
    return torch.conv2d(y, self.c)
)",
                              {{"a", at::randn({8, 3, 1, 1})},
                               {"c", at::randn({4, 8, 1, 1})},
                               {"d", at::randn({8, 4, 1, 1})}});
  const Pruned pruned = prune(net, {at::randn({1, 3, 6, 6})});
  EXPECT_EQ(pruned.pruning.plan.groups.size(), 2U) << pruned.dump;
  EXPECT_LE(pruned.difference, 1e-5) << pruned.dump;
  EXPECT_EQ(pruned.small.attr("d").toTensor().sizes(), (Shape{4, 2, 1, 1}));
}

/// What libtorch makes of a size would be another number for a smaller one.
TEST(CompositeOperators, ThatDivideByASizeStay) {
  const Between one{"", "    y = y - torch.cov(y.flatten(1)[0]).reshape([1, 1, 1, 1])\n"};
  const Pruned pruned = prune(with_between(one), {at::randn({1, 3, 6, 6})});
  EXPECT_TRUE(pruned.pruning.plan.groups.empty()) << pruned.dump;
  EXPECT_LE(pruned.difference, 1e-5) << pruned.dump;
}

}  // namespace
}  // namespace parsimony::test
