// Networks whose answer turns on a last bit: what they choose from is compared in its place.
#include "parsimony/torch_io/executor/choices.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "parsimony/api/prune.h"
#include "parsimony/api/reference.h"
#include "parsimony/engines/random_inputs.h"
#include "parsimony/graph/model_editor.h"
#include "parsimony/torch_io/executor/graph_module.h"
#include "parsimony/torch_io/network.h"
#include "tests/support/model.h"
#include "tests/torch_io/executor_support.h"

namespace parsimony {
namespace {

using test::Tensors;
using test::TextModel;

/// Where a > b it answers a, elsewhere -a.
const TextModel& either() {
  static const TextModel model(R"(g (float[4,6] x) => (float[4,8] y) {
    a = MatMul (x, A)
    b = MatMul (x, B)
    c = Greater (a, b)
    n = Neg (a)
    y = Where (c, a, n)
  })",
                               {{"A", "6x8"}, {"B", "6x8"}});
  return model;
}

/// `either` with B = `factor` · A.
torch_io::TorchNetwork tied(double factor) {
  GraphModule net(either().graph(), GraphModuleOptions{.trainable = false});
  net->weights().at("B").copy_(factor * net->weights().at("A"));
  return [net](const Tensors& inputs) mutable { return net->forward(inputs); };
}

Proof compare(torch_io::TorchNetwork small) {
  torch_io::TorchNetwork original = tied(1);
  return Reference(either().graph(), {}, {}, original, {}).compare(small);
}

TEST(Choices, ALastBitThatDecidesIsNoDifference) {
  const Proof proof = compare(tied(1 - 1e-6));
  EXPECT_TRUE(proof.holds());
  ASSERT_EQ(proof.choices.size(), 2U);
  EXPECT_EQ(proof.choices[0].name, "Greater \"c\", operand 0");
  EXPECT_EQ(proof.choices[0].difference, 0);
  EXPECT_NEAR(proof.choices[1].difference, 1e-6, 5e-7);
  EXPECT_EQ(proof.choices[1].tolerance, ProofOptions{}.tolerance);
  EXPECT_EQ(proof.outputs[0].difference, 0);
}

TEST(Choices, NetworksThatAgreeChooseByThemselves) {
  const Proof proof = compare(tied(1));
  EXPECT_TRUE(proof.holds());
  EXPECT_TRUE(proof.choices.empty());
}

TEST(Choices, WhatIsChosenFromIsHeldToTheTolerance) {
  const Proof proof = compare(tied(1 - 1e-3));
  EXPECT_FALSE(proof.holds());
  EXPECT_TRUE(proof.choices.empty()) << "what it answers by itself is what is reported";
  EXPECT_GT(proof.worst()->difference, 1);
}

TEST(Choices, AFaultBehindTheChoiceIsFound) {
  const Proof proof = compare(
      [run = tied(1 - 1e-6)](const Tensors& inputs) { return Tensors{1.01 * run(inputs).at(0)}; });
  EXPECT_FALSE(proof.holds());
}

TEST(Choices, ANetworkThatDoesNotAskIsNotExcused) {
  const Proof proof = compare([](const Tensors& inputs) {
    Choices own;
    const Choices::Use use(own, Choices::Mode::kRecord);
    return tied(1 - 1e-6)(inputs);
  });
  EXPECT_FALSE(proof.holds());
}

TEST(Choices, AMaskedNetworkChoosesFromWhatIsPresent) {
  TextModel model(R"(g (float[4,6] x) => (float[4,3] y) {
    h = MatMul (x, W1)
    c = Greater (h, zero)
    k = Where (c, h, zero)
    y = MatMul (k, W2)
  })",
                  {{"W1", "6x8"}, {"zero", "1", "zeros"}, {"W2", "8x3"}});
  const Pruning pruning = plan_pruning(model.graph(), from_shorthand({.ratio = 0.5}), {});
  ASSERT_FALSE(pruning.plan.empty());
  GraphEditor small(model.graph(), GraphEditor::Elements::kAll);
  replay(pruning.plan, small);
  const Tensors inputs = torch_io::to_tensors(runtime::random_inputs(model.graph(), Probe{}, 1));
  Choices choices;
  {
    const Choices::Use use(choices, Choices::Mode::kRecord);
    torch_io::masked_run(model.graph(), pruning.plan)(inputs);
  }
  {
    const Choices::Use use(choices, Choices::Mode::kReplay);
    torch_io::plain_run(small.graph())(inputs);
  }
  ASSERT_EQ(choices.list().size(), 2U);
  const Choice& compared = choices.list()[0];
  EXPECT_EQ(compared.numbers.sizes(), (at::IntArrayRef{4, 4}));
  EXPECT_LE(test::relative_error(compared.found, compared.numbers), 1e-6);
}

TEST(Choices, EachRunOfABodyIsAChoice) {
  const TextModel model(R"(g (int64 m, bool go, float[2] x) => (float[2] end) {
    end = Loop (m, go, x) <
      body = b (int64 i, bool c, float[2] v) => (bool o, float[2] w) {
        o = Identity (c)
        f = Floor (v)
        w = Add (f, v)
      }
    >
  })",
                        {});
  GraphModule net(model.graph());
  const Tensors inputs = {at::scalar_tensor(3, at::kLong), at::scalar_tensor(true, at::kBool),
                          at::tensor({1.5F, -0.5F})};
  Choices choices;
  const Tensors expected = [&] {
    const Choices::Use use(choices, Choices::Mode::kRecord);
    return net->forward(inputs);
  }();
  ASSERT_EQ(choices.list().size(), 3U);
  EXPECT_TRUE(at::equal(choices.list()[1].numbers, at::tensor({2.5F, -1.5F})));
  const Tensors less = {at::scalar_tensor(2, at::kLong), inputs[1], inputs[2] + 0.25};
  {
    const Choices::Use use(choices, Choices::Mode::kReplay);
    net->forward(less);
  }
  EXPECT_TRUE(at::equal(choices.list()[0].found, at::tensor({1.75F, -0.25F})));
  EXPECT_FALSE(choices.list()[2].found.defined()) << "nobody asked a third time";
  const Tensors more = {at::scalar_tensor(4, at::kLong), inputs[1], inputs[2]};
  {
    const Choices::Use use(choices, Choices::Mode::kReplay);
    net->forward(more);
  }
  ASSERT_EQ(choices.list().size(), 4U);
  EXPECT_FALSE(choices.list()[3].numbers.defined()) << "nothing to give the fourth time";
}

}  // namespace
}  // namespace parsimony
