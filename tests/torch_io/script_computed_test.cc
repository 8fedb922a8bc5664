// What TorchScript computes from literals alone is a weight, and a buffer once channels of it go.
#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/csrc/jit/ir/ir.h>

#include "parsimony/torch_io/script/run.h"
#include "tests/torch_io/script_support.h"

namespace parsimony::test {
namespace {

using torch::jit::Module;

/// Of a time t[n]: 32 numbers, then two layers.
Module time_embedding(const std::string& frequencies, const std::string& more = "") {
  at::manual_seed(7);
  return scripted("def forward(self, t):\n    f = " + frequencies + "\n" + more + R"(
    g = t.unsqueeze(1) * f
    h = torch.relu(torch.linear(torch.cat([torch.cos(g), torch.sin(g)], 1), self.a, self.b))
    return torch.linear(h, self.c)
)",
                  {{"a", at::randn({24, 32})}, {"b", at::randn({24})}, {"c", at::randn({3, 24})}});
}

const at::Tensor kTimes = at::tensor({0.5F, 3.0F});

Shape size_of_buffer(const Module& module, const std::string& name) {
  return module.attr(name).toTensor().sizes().vec();
}

struct Spelling {
  const char* frequencies;
  const char* buffer;
};

const Spelling kFrequencies[] = {
    {"torch.exp(torch.arange(16) * -0.5)", "exp_0"},
    {"torch.exp(torch.arange(0, 16, dtype=6) / -2)", "exp_0"},
    {"torch.pow(100.0, torch.arange(0, 1, 0.0625))", "pow_0"},
    {"torch.linspace(0, 1, 16)", "linspace_0"},
    {"torch.logspace(0, -2, 16)", "logspace_0"},
    {"torch.hann_window(16)", "hann_window_0"},
    {"torch.tensor([1., 2., 3., 4., 5., 6., 7., 8.]).repeat(2)", "repeat_0"},
    {"torch.cat([torch.arange(8), torch.arange(8)]).float().add(1.0)", "add_0"},
};

TEST(ComputedTensors, ChannelsOfFrequenciesAreRemoved) {
  for (const auto& [frequencies, buffer] : kFrequencies) {
    const Module net = time_embedding(frequencies);
    const Pruned pruned = prune(net, {kTimes});
    EXPECT_EQ(pruned.pruning.plan.groups.size(), 2U) << frequencies << pruned.dump;
    EXPECT_LE(pruned.difference, 1e-5) << frequencies;
    EXPECT_EQ(pruned.small.attr("a").toTensor().sizes(), (Shape{12, 16})) << frequencies;
    ASSERT_TRUE(pruned.small.hasattr(buffer)) << frequencies << pruned.dump;
    EXPECT_EQ(size_of_buffer(pruned.small, buffer), Shape{8}) << frequencies;
    EXPECT_EQ(pruned.small.buffers().size(), 1U) << frequencies;
  }
}

TEST(ComputedTensors, NothingIsComputedAnyMore) {
  const Pruned pruned = prune(time_embedding("torch.exp(torch.arange(16) * -0.5)"), {kTimes});
  for (const torch::jit::Node* node : pruned.small.get_method("forward").graph()->nodes()) {
    const std::string op = node->kind().toQualString();
    EXPECT_TRUE(op != "aten::arange" && op != "aten::exp") << op;
  }
}

TEST(ComputedTensors, StayWhereTheProgramCannotBeEdited) {
  const Module net = time_embedding("torch.exp(torch.arange(16) * -0.5)");
  const auto specs = specs_of({kTimes});
  EXPECT_TRUE(torch_io::is_computed(torch_io::read_script(net, specs), "exp_0"));
  const torch_io::ScriptGraph fixed = torch_io::read_script(net, specs, torch_io::Computed::kStay);
  for (const Weight& weight : fixed.graph.weights) {
    EXPECT_FALSE(torch_io::is_computed(fixed, weight.name)) << weight.name;
  }
}

TEST(ComputedTensors, WhatIsWrittenToIsNotEvaluated) {
  const Module net = time_embedding("torch.arange(0.0, 16.0)", "    f.add_(1.0)\n");
  const Pruned pruned = prune(net, {kTimes});
  EXPECT_EQ(pruned.pruning.plan.groups.size(), 1U) << pruned.dump;
  EXPECT_LE(pruned.difference, 1e-5);
  EXPECT_TRUE(pruned.small.buffers().size() == 0);
}

/// A table that is added to the channels no longer holds them.
TEST(ComputedTensors, PositionsFollowTheChannelsTheyAreAddedTo) {
  at::manual_seed(8);
  const Module net = scripted(R"(
def forward(self, x):
    angle = torch.arange(5).unsqueeze(1) * torch.pow(100.0, torch.arange(4) / -4.0)
    place = torch.cat([torch.sin(angle), torch.cos(angle)], 1)
    return torch.linear(torch.linear(x, self.a) + place, self.c)
)",
                              {{"a", at::randn({8, 6})}, {"c", at::randn({3, 8})}});
  const Pruned pruned = prune(net, {at::randn({2, 5, 6})});
  EXPECT_EQ(pruned.pruning.plan.groups.size(), 1U) << pruned.dump;
  EXPECT_LE(pruned.difference, 1e-5);
  EXPECT_EQ(size_of_buffer(pruned.small, "cat_0"), (Shape{5, 4}));
}

TEST(ComputedTensors, SizesOfTheProgramsOwnAreNoLiterals) {
  at::manual_seed(9);
  const Module net = scripted(R"(
def forward(self, x):
    y = torch.linear(x, self.a)
    return torch.linear(y * torch.arange(y.size(1)), self.c)
)",
                              {{"a", at::randn({8, 6})}, {"c", at::randn({3, 8})}});
  const Pruned pruned = prune(net, {at::randn({2, 6})});
  EXPECT_TRUE(pruned.pruning.plan.groups.empty()) << pruned.dump;
  EXPECT_LE(pruned.difference, 1e-5);
}

TEST(ComputedTensors, HugeOnesAreNotMade) {
  const Module net = time_embedding(
      "(torch.arange(1000000).unsqueeze(1) * torch.arange(1000000)).sum() * torch.ones([16])");
  const torch_io::ScriptGraph script = torch_io::read_script(net, specs_of({kTimes}));
  for (const Weight& weight : script.graph.weights) {
    EXPECT_FALSE(torch_io::is_computed(script, weight.name)) << weight.name;
  }
}

}  // namespace
}  // namespace parsimony::test
