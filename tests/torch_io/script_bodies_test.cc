// Control flow in TorchScript that data decide: whichever way a run takes, the small module
// follows.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "tests/torch_io/script_support.h"

namespace parsimony::test {
namespace {

std::vector<std::pair<std::string, at::Tensor>> layers() {
  at::manual_seed(3);
  return {{"w1", at::randn({8, 6})},     {"b1", at::randn({8})},     {"w2", at::randn({3, 8})},
          {"w3", at::randn({8, 8}) / 3}, {"w4", at::randn({32, 8})}, {"w5", at::randn({32, 8})}};
}

/// Of a program whose middle this is.
torch::jit::Module around(const std::string& middle) {
  return scripted(
      "\ndef forward(self, x):\n    y = torch.relu(torch.linear(x, self.w1, self.b1))\n" + middle +
          "\n    return torch.linear(y, self.w2)\n",
      layers());
}

/// Groups that were cut, after runs that take either way.
size_t groups_of(const std::string& middle) {
  const torch::jit::Module net = around(middle);
  size_t groups = 0;
  for (const double scale : {0.01, 1.0, 100.0}) {
    const Pruned pruned = prune(net, {at::randn({4, 6}) * scale});
    EXPECT_LE(pruned.difference, 1e-4) << pruned.dump;
    EXPECT_LE(pruned.misread.value_or(1), 1e-5) << pruned.dump;
    groups = pruned.pruning.plan.groups.size();
  }
  return groups;
}

bool is_whole(const std::string& middle, const std::string& reason) {
  const Pruned pruned = prune(around(middle), {at::randn({4, 6})});
  EXPECT_LE(pruned.difference, 1e-4) << pruned.dump;
  return std::ranges::any_of(pruned.pruning.plan.unpruned_dims, [&](const UnprunedDim& whole) {
    return whole.axis == "w1[0]" && whole.reason.find(reason) != std::string::npos;
  });
}

TEST(ScriptBodies, BranchesHaveWhatTheyHandOnInCommon) {
  EXPECT_EQ(groups_of(R"(
    if bool(y.sum() > 20.):
        y = torch.relu_(torch.linear(y, self.w3))
    else:
        y = torch.tanh(y)
)"),
            1);
  EXPECT_EQ(groups_of(R"(
    if bool(y.sum() > 9.):
        y = torch.linear(torch.linear(y, self.w3).view(-1, 2, 4).reshape(-1, 8), self.w3)
)"),
            1);
}

TEST(ScriptBodies, ALoopEndsWhereDataSay) {
  EXPECT_EQ(groups_of(R"(
    i = 0
    while bool(y.sum() > 1.) and i < 5:
        y = torch.relu(torch.linear(y, self.w3)) / 2
        i += 1
)"),
            1);
  EXPECT_EQ(groups_of(R"(
    for i in range(6):
        y = torch.linear(y, self.w3)
        if bool(y.sum() > 0.5):
            break
)"),
            1);
}

TEST(ScriptBodies, StatesOfCellsShrink) {
  EXPECT_EQ(groups_of(R"(
    h, c, i = torch.zeros_like(y), torch.zeros_like(y), 0
    while i < 4 and bool(h.abs().sum() < 0.5):
        h, c = torch.lstm_cell(y, (h, c), self.w4, self.w5)
        i += 1
    y = h
)"),
            2);
}

/// Where the branch is not taken, z is y: a write to one is a write to both.
TEST(ScriptBodies, WhatABlockHandsOnMayStandOutside) {
  EXPECT_TRUE(is_whole(R"(
    z = y
    if bool(y.sum() > 1000.):
        z = torch.linear(y, self.w3)
    z.add_(1)
    y = y + z
)",
                       "add_"));
}

TEST(ScriptBodies, WhatChangesThingsAroundABlockStaysWhole) {
  EXPECT_TRUE(is_whole(R"(
    ys = [y]
    while bool(y.sum() > 100.):
        y = y / 2
        ys.append(y)
    y = torch.stack(ys).sum(0)
)",
                       "control flow (Loop)"));
  EXPECT_TRUE(is_whole(R"(
    z = torch.linear(y, self.w3)
    if bool(y.sum() > 0):
        z.add_(1)
    y = z + y
)",
                       "control flow (If)"));
}

}  // namespace
}  // namespace parsimony::test
