#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>

#include "parsimony/api/prune_model.h"
#include "parsimony/base/errors.h"
#include "parsimony/onnx_io/reader.h"
#include "tests/support/fixture.h"

namespace parsimony::test {
namespace {

/// Three layers with a group of channels between each two, pruned by half.
class Blame : public ::testing::Test {
 protected:
  void SetUp() override {
    onnx::ModelProto model = model_of(R"(
      g (float[2, 4] x) => (float[2, 3] y) {
        a = MatMul (x, w1)
        b = MatMul (a, w2)
        c = MatMul (b, w3)
        y = MatMul (c, w4)
      })");
    for (const auto& [name, dims] : {std::pair("w1", "4x6"), std::pair("w2", "6x8"),
                                     std::pair("w3", "8x10"), std::pair("w4", "10x3")}) {
      add_weight(model, name, dims);
    }
    std::ofstream(folder_ / "m.onnx", std::ios::binary) << model.SerializeAsString();
    file_.emplace(folder_ / "m.onnx");
    graph_ = onnx_io::to_graph(*file_);
    pruning_ = plan_pruning(graph_, from_shorthand({.ratio = 0.5}));
    ASSERT_EQ(pruning_.plan.groups.size(), 3U);
  }

  TemporaryFolder folder_;
  std::optional<onnx_io::ModelFile> file_;
  Graph graph_;
  Pruning pruning_;
};

TEST_F(Blame, NamesTheGroupWithWhichItBegins) {
  const char* const layers[] = {"a", "b", "c"};
  for (size_t g = 0; g < 3; ++g) {
    const std::string& guilty = pruning_.plan.groups[g].id;
    const auto differs = [&](const Plan& plan) {
      return std::any_of(plan.groups.begin(), plan.groups.end(),
                         [&](const PlanGroup& group) { return group.id == guilty; });
    };
    EXPECT_EQ(group_at_fault(graph_, pruning_, differs)->text,
              "group " + guilty + " (" + layers[g] + ")");
  }
}

TEST_F(Blame, IsOfNoGroupWhereTheGraphIsFine) {
  EXPECT_FALSE(group_at_fault(graph_, pruning_, [](const Plan&) { return false; }));
}

TEST_F(Blame, IsOfNoGroupWhereTheGraphCannotBeRun) {
  const auto differs = [](const Plan&) -> bool { throw UnsupportedError("unknown operator"); };
  EXPECT_FALSE(group_at_fault(graph_, pruning_, differs));
}

}  // namespace
}  // namespace parsimony::test
