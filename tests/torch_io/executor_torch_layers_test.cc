// The recurrent layers of domain "torch" against libtorch's own, and pools onto a grid.
#include <gtest/gtest.h>

#include "parsimony/torch_io/executor/operators_impl.h"

namespace parsimony::executor {
namespace {

constexpr int64_t kSteps = 5;
constexpr int64_t kBatch = 2;
constexpr int64_t kIn = 3;
constexpr int64_t kUnits = 4;

Tensors run(const char* op, Tensors operands, size_t outputs,
            std::vector<std::pair<std::string, Attribute>> attributes = {}) {
  Node node;
  node.op = op;
  node.domain = "torch";
  node.attributes = std::move(attributes);
  node.outputs.resize(outputs);
  return find_operator("torch", op)->kernel(Call(node, std::move(operands)));
}

struct Layer {
  explicit Layer(int64_t gates) {
    at::manual_seed(1);
    x = at::randn({kSteps, kBatch, kIn});
    weights = {at::randn({gates * kUnits, kIn}), at::randn({gates * kUnits, kUnits}),
               at::randn({gates * kUnits}), at::randn({gates * kUnits})};
    h = at::randn({1, kBatch, kUnits});
    c = at::randn({1, kBatch, kUnits});
  }

  Tensors operands(bool with_c) const {
    Tensors all{x};
    all.insert(all.end(), weights.begin(), weights.end());
    all.push_back(h);
    if (with_c) all.push_back(c);
    return all;
  }

  at::Tensor x;
  Tensors weights;
  at::Tensor h;
  at::Tensor c;
};

void expect_close(const at::Tensor& found, const at::Tensor& expected) {
  ASSERT_EQ(found.sizes(), expected.sizes());
  EXPECT_TRUE(at::allclose(found, expected, 1e-5, 1e-6));
}

TEST(ExecutorTorchLayers, Lstm) {
  const Layer l(4);
  const Tensors y = run("Lstm", l.operands(true), 3);
  const auto expected = at::lstm(l.x, {l.h, l.c}, l.weights, true, 1, 0, false, false, false);
  expect_close(y[0], std::get<0>(expected));
  expect_close(y[1], std::get<1>(expected));
  expect_close(y[2], std::get<2>(expected));
}

TEST(ExecutorTorchLayers, Gru) {
  const Layer l(3);
  const Tensors y = run("Gru", l.operands(false), 2);
  const auto expected = at::gru(l.x, l.h, l.weights, true, 1, 0, false, false, false);
  expect_close(y[0], std::get<0>(expected));
  expect_close(y[1], std::get<1>(expected));
}

TEST(ExecutorTorchLayers, Rnn) {
  const Layer l(1);
  const Tensors relu = run("Rnn", l.operands(false), 2, {{"nonlinearity", std::string("relu")}});
  const auto expected = at::rnn_relu(l.x, l.h, l.weights, true, 1, 0, false, false, false);
  expect_close(relu[0], std::get<0>(expected));
  const Tensors tanh = run("Rnn", l.operands(false), 2);
  const auto plain = at::rnn_tanh(l.x, l.h, l.weights, true, 1, 0, false, false, false);
  expect_close(tanh[0], std::get<0>(plain));
}

TEST(ExecutorTorchLayers, ReverseGoesFromTheEnd) {
  const Layer l(4);
  Layer flipped = l;
  flipped.x = l.x.flip({0});
  const Tensors y = run("Lstm", l.operands(true), 3, {{"reverse", int64_t{1}}});
  const Tensors expected = run("Lstm", flipped.operands(true), 3);
  expect_close(y[0], expected[0].flip({0}));
  expect_close(y[1], expected[1]);
}

TEST(ExecutorTorchLayers, AdaptivePools) {
  const at::Tensor x = at::randn({2, 3, 7, 10});
  const at::Tensor sizes = at::tensor({2, 3, 3, 4}, at::kLong);
  expect_close(run("AdaptiveAveragePool", {x, {}, {}, sizes}, 1)[0],
               at::adaptive_avg_pool2d(x, {3, 4}));
  expect_close(run("AdaptiveMaxPool", {x, {}, {}, sizes}, 1)[0],
               std::get<0>(at::adaptive_max_pool2d(x, {3, 4})));
}

}  // namespace
}  // namespace parsimony::executor
