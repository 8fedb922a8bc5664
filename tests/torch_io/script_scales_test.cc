// Scales of attention in TorchScript: written as numbers, computed from a size, made to follow.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "parsimony/api/prune.h"
#include "parsimony/speedup/scales.h"
#include "parsimony/torch_io/network.h"
#include "parsimony/torch_io/script/editor.h"
#include "tests/torch_io/script_support.h"

namespace parsimony::test {
namespace {

struct Rescaled {
  Plan plan;
  std::vector<CutScale> scales;
  double difference = 0;  ///< of the small module from the masked original
};

/// Attention of one head with 12 dimensions, scaled by what `scale` computes from s = q kᵀ.
Rescaled attention(const std::string& scale, bool rescale) {
  at::manual_seed(1);
  const auto random = [](at::IntArrayRef dims) { return at::randn(dims); };
  const auto module =
      scripted(R"(
def forward(self, x):
    q = torch.matmul(x, self.wq)
    k = torch.matmul(x, self.wk)
    s = torch.matmul(q, k.transpose(1, 2))
    p = torch.softmax()" +
                   scale + R"(, -1)
    return torch.matmul(p, self.wo)
)",
               {{"wq", random({6, 12})}, {"wk", random({6, 12})}, {"wo", random({5, 4})}});
  const std::vector<c10::IValue> inputs = {random({2, 5, 6})};
  PruneRequest request = from_shorthand({.criterion = "l1", .ratio = 0.5});
  request.inputs = specs_of(inputs);
  request.rescale = rescale;
  torch_io::ScriptGraph script = torch_io::read_script(reloaded(module), request.inputs);
  const Pruning pruning = plan_pruning(script.graph, request);
  const auto expected = torch_io::masked_run(script.graph, pruning.plan)({inputs[0].toTensor()});
  torch_io::ScriptEditor editor(script);
  apply_plan(pruning.plan, script.graph, pruning.analysis.probe, editor);
  const auto small = reloaded(editor.finish());
  EXPECT_EQ(small.attr("wq").toTensor().size(1), 6);
  return {pruning.plan, pruning.scales, relative_difference(run(small, inputs), expected)};
}

const std::vector<std::string> kSpellings = {"s * 0.28867513459481287",
                                             "s / 3.4641016151377544",
                                             "s / q.size(-1) ** 0.5",
                                             "s * q.size(-1) ** -0.5",
                                             "s / torch.sqrt(torch.tensor(q.size(-1)))",
                                             "s * torch.rsqrt(torch.tensor(q.size(-1)))"};

TEST(ScriptScales, KeepTheirValue) {
  for (const std::string& scale : kSpellings) {
    const Rescaled found = attention(scale, false);
    EXPECT_EQ(found.scales.size(), 1U) << scale;
    EXPECT_TRUE(found.plan.scales.empty()) << scale;
    EXPECT_LT(found.difference, 1e-5) << scale;
  }
}

TEST(ScriptScales, FollowWhereAskedFor) {
  for (const std::string& scale : kSpellings) {
    const Rescaled found = attention(scale, true);
    ASSERT_EQ(found.plan.scales.size(), 1U) << scale;
    EXPECT_LT(found.difference, 1e-5) << scale;
  }
}

}  // namespace
}  // namespace parsimony::test
