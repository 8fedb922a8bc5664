// Refitting layers that can make up for all of a cut: every channel that is removed has a twin that
// stays, so that the kept weights can give exactly what the dense network gives.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cstring>
#include <deque>
#include <functional>

#include "parsimony/api/prune.h"
#include "parsimony/speedup/fit_layers.h"
#include "parsimony/speedup/small_network.h"
#include "parsimony/torch_io/tensor.h"
#include "tests/support/model.h"
#include "tests/training/refitting.h"

namespace parsimony::training {
namespace {

using test::output_error;
using test::refit;
using test::TextModel;
using Shape = std::vector<int64_t>;

/// A network in which half of a layer's channels equal the other half.
class Twins {
 public:
  Twins(const std::string& text, const std::vector<test::SeededWeight>& weights, Shape input)
      : model_(text, weights), input_(std::move(input)) {}

  Graph& graph() { return model_.graph(); }
  Weight& weight(const std::string& name) {
    for (Weight& weight : graph().weights) {
      if (weight.name == name) return weight;
    }
    throw std::out_of_range(name);
  }

  /// Along `axis`, seen as runs of `size` indices, the second half of each run is the first half
  /// times a factor.
  void repeat(const std::string& name, int64_t axis, int64_t size) {
    at::Tensor values = torch_io::to_tensor(weight(name)).clone();
    at::Tensor runs = values.movedim(axis, 0).unflatten(0, {-1, size});
    runs.narrow(1, size / 2, size / 2).copy_(runs.narrow(1, 0, size / 2));
    put(name, values);
    runs.narrow(1, size / 2, size / 2).mul_(0.01);
    small_twins_.emplace_back(name, values);
  }

  /// Removes the second halves; refits, and gives the output's error before and after.
  std::pair<double, double> errors() {
    const std::vector<Weight> own(graph().weights.begin(), graph().weights.end());
    std::vector<at::Tensor> before;
    for (const auto& [name, values] : small_twins_) {
      before.push_back(torch_io::to_tensor(weight(name)).clone());
      put(name, values);
    }
    const Pruning pruning =
        plan_pruning(graph(), from_shorthand({.criterion = "l1", .ratio = 0.5}));
    for (size_t i = 0; i < before.size(); ++i) put(small_twins_[i].first, before[i]);
    EXPECT_FALSE(pruning.plan.groups.empty());
    SmallNetwork small(graph(), pruning.plan);
    const double cut = output_error(graph(), small, batches(), 1);
    changed = refit(graph(), small, {}, batches(), {.ridge = 1e-9, .rounds = 1, .batch = 1});
    return {cut, output_error(graph(), small, batches(), 1)};
  }

  int changed = 0;  ///< layers

 private:
  void put(const std::string& name, const at::Tensor& values) {
    kept_.push_back(values.to(at::kFloat).contiguous().clone());
    weight(name).data = static_cast<const std::byte*>(kept_.back().data_ptr());
  }

  Batches batches() const {
    return [shape = input_](int64_t) -> BatchSource {
      const auto generator = at::detail::createCPUGenerator(5);
      return [shape, generator, left = 12]() mutable -> std::optional<SampleBatch> {
        if (left-- == 0) return {};
        SampleBatch batch;
        batch.inputs = {at::randn(shape, generator, at::kFloat)};
        batch.count = 1;
        return batch;
      };
    };
  }

  TextModel model_;
  Shape input_;
  std::vector<std::pair<std::string, at::Tensor>> small_twins_;
  std::deque<at::Tensor> kept_;
};

struct Layer {
  const char* name;
  const char* call;
  int64_t gates;
  int64_t directions = 1;
  Shape input = {7, 9, 4};
  bool last_step = false;
};

class RefitRecurrent : public ::testing::TestWithParam<Layer> {};

TEST_P(RefitRecurrent, FindsTheWeightsOfTwinUnits) {
  const Layer& layer = GetParam();
  const std::string d = std::to_string(layer.directions);
  const std::string rows = std::to_string(6 * layer.gates);
  const std::string answer = layer.last_step ? "last" : "steps";
  Twins net("net (float[" + std::to_string(layer.input[0]) + "," + std::to_string(layer.input[1]) +
                ",4] x) => (float y) { steps, last = " + layer.call + " y = MatMul(" + answer +
                ", V) }",
            {{"W", d + "x" + rows + "x4"},
             {"R", d + "x" + rows + "x6"},
             {"B", d + "x" + std::to_string(12 * layer.gates)},
             {"H", d + "x9x6"},
             {"V", "6x3"}},
            layer.input);
  for (const char* name : {"W", "R", "B"}) net.repeat(name, 1, 6);
  if (net.graph().find("H") != kNone) net.repeat("H", 2, 6);
  if (layer.last_step) {
    net.graph().nodes[NodeId(0)].outputs[0] = kNone;
  }
  const auto [cut, refitted] = net.errors();
  EXPECT_GT(cut, 0.05);
  EXPECT_LT(refitted, 2e-3);
  EXPECT_EQ(net.changed, 2);
}

INSTANTIATE_TEST_SUITE_P(
    Layers, RefitRecurrent,
    ::testing::Values(
        Layer{"Lstm", "LSTM<hidden_size=6>(x, W, R, B)", 4},
        Layer{"LstmFromAState", "LSTM<hidden_size=6>(x, W, R, B, , H)", 4},
        Layer{"LstmBothWays", "LSTM<hidden_size=6, direction=\"bidirectional\">(x, W, R, B)", 4, 2},
        Layer{"LstmLastStep", "LSTM<hidden_size=6>(x, W, R, B)", 4, 1, {7, 9, 4}, true},
        Layer{"Gru", "GRU<hidden_size=6, linear_before_reset=1>(x, W, R, B)", 3},
        Layer{"GruThatResetsFirst", "GRU<hidden_size=6>(x, W, R, B)", 3},
        Layer{"GruBackward", "GRU<hidden_size=6, direction=\"reverse\">(x, W, R, B)", 3},
        Layer{"GruBatchFirst", "GRU<hidden_size=6, layout=1>(x, W, R, B)", 3, 1, {9, 7, 4}},
        Layer{"Rnn", "RNN<hidden_size=6>(x, W, R, B)", 1}),
    [](const auto& of) { return std::string(of.param.name); });

TEST(RefitTransposed, FindsTheKernelsOfTwinChannels) {
  for (const std::string layer :
       {"ConvTranspose<strides=[2,2], pads=[1,1,1,1], output_padding=[1,1]>(b, W2, B2)",
        "ConvTranspose<strides=[2,1], dilations=[1,2]>(b, W2, B2)",
        "ConvTranspose<group=2, strides=[2,2]>(b, W3, B2)"}) {
    SCOPED_TRACE(layer);
    Twins net(
        "net (float[6,3,9,9] x) => (float y) { a = Conv(x, W1, B1) b = Relu(a) y = " + layer + " }",
        {{"W1", "8x3x3x3"}, {"B1", "8"}, {"W2", "8x6x3x3"}, {"W3", "8x3x3x3"}, {"B2", "6"}},
        {6, 3, 9, 9});
    net.repeat("W1", 0, 4);
    net.repeat("B1", 0, 4);
    const auto [cut, refitted] = net.errors();
    EXPECT_GT(cut, 0.05);
    EXPECT_LT(refitted, 2e-3);
  }
}

}  // namespace
}  // namespace parsimony::training
