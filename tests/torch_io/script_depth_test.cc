// Blocks that leave TorchScript modules.
#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/csrc/jit/passes/freeze_module.h>

#include "parsimony/api/depth.h"
#include "parsimony/api/prune.h"
#include "parsimony/base/errors.h"
#include "parsimony/torch_io/network.h"
#include "parsimony/torch_io/script/editor.h"
#include "tests/torch_io/script_support.h"

namespace parsimony::test {
namespace {

using torch::jit::Module;

constexpr const char* kBlocks = R"(
def forward(self, x):
    h = torch.relu(torch.conv2d(x, self.stem))
    a = torch.conv2d(torch.relu(torch.conv2d(h, self.a1, padding=1)), self.a2, padding=1)
    h = torch.relu(a + h)
    b = torch.conv2d(torch.relu_(torch.conv2d(h, self.b1, padding=1)), self.b2, padding=1)
    b += h
    h = torch.relu_(b)
    return torch.matmul(h.mean([2, 3]), self.head)
)";

Module blocks(const char* source = kBlocks) {
  at::manual_seed(5);
  return scripted(source, {{"stem", at::randn({8, 3, 1, 1})},
                           {"a1", at::randn({6, 8, 3, 3})},
                           {"a2", at::randn({8, 6, 3, 3})},
                           {"b1", at::randn({6, 8, 3, 3})},
                           {"b2", at::randn({8, 6, 3, 3})},
                           {"head", at::randn({8, 4})}});
}

/// Without the first `count` blocks, and a part of the channels that remain.
struct Shortened {
  Plan plan;
  Module small;
  double difference = 0;

  Shortened(const Module& module, int count, double ratio) {
    const std::vector<c10::IValue> inputs = {at::randn({2, 3, 6, 6})};
    torch_io::ScriptGraph script = torch_io::read_script(module, specs_of(inputs));
    PruneRequest request;
    PruneServices services;
    request.depth = DepthRequest{.count = count};
    services.influence = [](const Graph&, const std::vector<ResidualBlock>& found) {
      return std::vector<double>(found.size(), 0.5);
    };
    Shorthand shorthand;
    shorthand.ratio = ratio;
    request.config = from_shorthand(shorthand);
    plan = plan_depth(script.graph, request, services).pruning.plan;
    const auto expected = torch_io::masked_run(script.graph, plan)({inputs[0].toTensor()});
    torch_io::ScriptEditor editor(script);
    apply_plan(plan, script.graph, choose_probe(script.graph, specs_of(inputs)), editor);
    small = editor.finish();
    difference = relative_difference(run(small, inputs), expected);
  }
};

int64_t elements(const Module& module) {
  int64_t sum = 0;
  for (const auto& parameter : module.parameters()) sum += parameter.numel();
  return sum;
}

TEST(ScriptDepth, BlocksGoAndTheirTensorsWithThem) {
  const Module net = blocks();
  const Shortened one(net, 1, 0);
  EXPECT_LE(one.difference, 1e-5);
  EXPECT_EQ(elements(one.small), elements(net) - 2 * 6 * 8 * 9);
  const Shortened two(net, 2, 0);  // the second adds in place
  EXPECT_LE(two.difference, 1e-5);
  EXPECT_EQ(elements(two.small), 8 * 3 + 8 * 4);
  std::string text = two.small.get_method("forward").graph()->toString();
  EXPECT_EQ(text.find("aten::add"), std::string::npos) << text;
  EXPECT_EQ(text.find("a1"), std::string::npos) << text;
}

TEST(ScriptDepth, WidthsGoToo) {
  Module net = blocks();
  net.eval();
  for (const Module& either : {net, torch::jit::freeze_module(net)}) {
    for (const int count : {1, 2}) {
      const Shortened shortened(either, count, 0.5);
      EXPECT_FALSE(shortened.plan.groups.empty());
      EXPECT_LE(shortened.difference, 1e-5) << count;
    }
  }
}

TEST(ScriptDepth, AScaledSumKeepsWhatItScales) {
  const char* source = R"(
def forward(self, x):
    h = torch.relu(torch.conv2d(x, self.stem))
    a = torch.conv2d(torch.conv2d(h, self.a1, padding=1), self.a2, padding=1)
    h = torch.add(h, a, alpha=0.5)
    b = torch.conv2d(torch.conv2d(h, self.b1, padding=1), self.b2, padding=1)
    h = torch.add(h, b)
    return torch.matmul(h.mean([2, 3]), self.head)
)";
  EXPECT_LE(Shortened(blocks(source), 2, 0).difference, 1e-5);
}

}  // namespace
}  // namespace parsimony::test
