// Statistics of calibration data against direct computation by libtorch, in double.
#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <cmath>

#include "parsimony/api/prune.h"
#include "parsimony/base/errors.h"
#include "parsimony/onnx_io/model_file.h"
#include "parsimony/onnx_io/reader.h"
#include "parsimony/torch_io/tensor.h"
#include "parsimony/training/statistics/measure.h"
#include "tests/support/model.h"
#include "tests/training/small_nets.h"

namespace parsimony::test {
namespace {

using training::Batch;
using training::Batches;
using training::Measuring;

constexpr int kChannels = 6;
constexpr int64_t kBatch = 32;  // what a network with an open batch is given at once

/// A residual block: one group of six channels, read by conv2 and, flattened, by fc.
constexpr const char* kBlock = R"(
    block (float[N,3,8,8] x) => (float[N,4] y)
    {
      a = Conv<pads=[1,1,1,1], strides=[2,2]>(x, W1)
      b = BatchNormalization(a, gamma, beta, mean, var)
      c = Relu(b)
      d = Conv<pads=[1,1,1,1]>(c, W2, B2)
      e = Add(c, d)
      f = Relu(e)
      g = Flatten(f)
      h = Gemm<transB=1>(g, W3, B3)
      y = Softmax(h)
    })";

class Block {
 public:
  Block() : Block(kBlock) {}
  explicit Block(const std::string& text) {
    write_onnx(folder_ / "block.onnx", text,
               {{"W1", "6x3x3x3"},
                {"gamma", "6"},
                {"beta", "6"},
                {"mean", "6"},
                {"var", "6", "positive"},
                {"W2", "6x6x3x3"},
                {"B2", "6"},
                {"W3", "4x96"},
                {"B3", "4"}});
    file.emplace(folder_ / "block.onnx");
    graph = onnx_io::to_graph(*file);
    analysis = analyse(graph);
  }

  at::Tensor weight(const std::string& name) const {
    for (const Weight& each : graph.weights) {
      if (each.name == name) return torch_io::to_tensor(each).to(at::kDouble);
    }
    throw std::runtime_error(name);
  }

  Statistics measure(const Needs& needs, const Batches& batches) const {
    return training::measure(graph, analysis.facts, analysis.coupling, needs, batches);
  }

  std::optional<onnx_io::ModelFile> file;
  Graph graph;
  Analysis analysis;

 private:
  TemporaryFolder folder_;
};

struct Data {
  explicit Data(int64_t samples, uint64_t seed = 5) {
    const at::Generator generator = at::detail::createCPUGenerator(seed);
    x = at::randn({samples, 3, 8, 8}, generator);
    labels = at::randint(0, 4, {samples}, generator, at::kLong);
  }

  Batches batches() const {
    return [*this](int64_t size) -> training::BatchSource {
      return [*this, size, next = int64_t{0}]() mutable -> std::optional<training::SampleBatch> {
        const int64_t count = std::min(size, x.size(0) - next);
        if (count <= 0) return {};
        next += count;
        const Batch batch{x.narrow(0, next - count, count), labels.narrow(0, next - count, count)};
        training::SampleBatch samples(batch);
        if (!labelled) samples.labels = at::Tensor();
        return samples;
      };
    };
  }

  at::Tensor x, labels;
  bool labelled = true;
};

/// The block written out. `mask`, [6], multiplies what conv2 and fc read; the addition reads the
/// unmasked values.
struct Direct {
  explicit Direct(const Block& block) {
    for (const char* name : {"W1", "gamma", "beta", "mean", "var", "W2", "B2", "W3", "B3"}) {
      w[name] = block.weight(name);
    }
    w["W1"].requires_grad_(true);
    w["W2"].requires_grad_(true);
  }

  at::Tensor loss(const at::Tensor& input, const at::Tensor& labels,
                  const at::Tensor& mask = at::ones({kChannels}, at::kDouble)) {
    x = input.to(at::kDouble);
    const at::Tensor m = mask.view({1, -1, 1, 1});
    const at::Tensor a = at::conv2d(x, w["W1"], {}, 2, 1);
    c = at::relu(
        at::batch_norm(a, w["gamma"], w["beta"], w["mean"], w["var"], false, 0.1, 1e-5, false));
    f = at::relu(c + at::conv2d(c * m, w["W2"], w["B2"], 1, 1));
    const at::Tensor h = at::linear((f * m).flatten(1), w["W3"], w["B3"]);
    return at::cross_entropy_loss(h, labels);
  }

  /// Σ g·w to a power, per channel.
  at::Tensor change(const at::Tensor& of_loss, int power) {
    const auto g = torch::autograd::grad({of_loss}, {w["W1"], w["W2"]});
    return (g[0] * w["W1"]).detach().pow(power).sum({1, 2, 3}) +
           (g[1] * w["W2"]).detach().pow(power).sum({1, 2, 3});
  }

  std::map<std::string, at::Tensor> w;
  at::Tensor x, c, f;
};

void expect_near(const std::vector<double>& found, const at::Tensor& expected) {
  ASSERT_EQ(static_cast<int64_t>(found.size()), expected.numel());
  const double scale = expected.abs().max().item<double>();
  for (size_t i = 0; i < found.size(); ++i) {
    EXPECT_NEAR(found[i], expected[static_cast<int64_t>(i)].item<double>(), 1e-5 * scale) << i;
  }
}

at::Tensor per_channel(const at::Tensor& x) { return x.to(at::kDouble).sum({0, 2, 3}); }

TEST(Statistics, Activations) {
  const Block block;
  ASSERT_EQ(block.analysis.coupling.groups.size(), 1U);
  const Data data(40);
  const Statistics found =
      block.measure({.channels = {Measure::kZeroShare, Measure::kMeanActivation,
                                  Measure::kActivationNorm, Measure::kRank}},
                    data.batches());
  EXPECT_EQ(found.samples, 40);
  EXPECT_EQ(found.groups, PerGroup<std::string>{"g0"});
  Direct direct(block);
  direct.loss(data.x, data.labels);
  const at::Tensor c = direct.c.detach();
  const at::Tensor f = direct.f.detach();
  const double count = 2.0 * 40 * 16;
  const auto of = [&](Measure measure) { return found.channels.at(measure)[GroupId(0)]; };
  expect_near(of(Measure::kZeroShare), (per_channel(c.eq(0)) + per_channel(f.eq(0))) / count);
  expect_near(of(Measure::kMeanActivation), (per_channel(c) + per_channel(f)) / count);
  expect_near(of(Measure::kActivationNorm),
              ((per_channel(c.square()) + per_channel(f.square())) / 40).sqrt());
  const auto rank = [](const at::Tensor& maps) {
    const c10::optional<double> tolerance = 1e-6;
    return at::linalg_matrix_rank(maps, tolerance, c10::optional<double>{}).to(at::kDouble).sum(0);
  };
  expect_near(of(Measure::kRank), (rank(c) + rank(f)) / 80.0);
}

TEST(Statistics, TaylorOverBatches) {
  const Block block;
  const Data data(40);
  const Statistics found =
      block.measure({.channels = {Measure::kTaylor, Measure::kTaylorSquared}}, data.batches());
  Direct direct(block);
  at::Tensor magnitude = at::zeros({kChannels}, at::kDouble);
  at::Tensor squares = magnitude.clone();
  for (const auto& [first, count] : {std::pair<int64_t, int64_t>{0, kBatch}, {kBatch, 8}}) {
    const at::Tensor change = direct.change(
        direct.loss(data.x.narrow(0, first, count), data.labels.narrow(0, first, count)), 1);
    magnitude += change.abs();
    squares += change.square();
  }
  expect_near(found.channels.at(Measure::kTaylor)[GroupId(0)], magnitude / 2);
  expect_near(found.channels.at(Measure::kTaylorSquared)[GroupId(0)], squares / 2);
}

TEST(Statistics, FisherAndHessianOverSamples) {
  const Block block;
  const Data data(10);
  const Statistics found =
      block.measure({.channels = {Measure::kFisher, Measure::kHessian}}, data.batches());
  Direct direct(block);
  at::Tensor fisher = at::zeros({kChannels}, at::kDouble);
  at::Tensor hessian = fisher.clone();
  for (int64_t i = 0; i < 10; ++i) {
    const at::Tensor x = data.x.narrow(0, i, 1);
    const at::Tensor label = data.labels.narrow(0, i, 1);
    const at::Tensor mask = at::ones({kChannels}, at::kDouble).requires_grad_(true);
    fisher += torch::autograd::grad({direct.loss(x, label, mask)}, {mask})[0].square();
    hessian += 0.5 * direct.change(direct.loss(x, label), 2);
  }
  expect_near(found.channels.at(Measure::kFisher)[GroupId(0)], fisher / 10);
  expect_near(found.channels.at(Measure::kHessian)[GroupId(0)], hessian / 10);
}

/// Gradients of a whole batch serve where each sample has its own; here they meet in a mean.
TEST(Statistics, FisherOfSamplesThatMeetIsThatOfEachAlone) {
  std::string text = kBlock;
  const std::string relu = "f = Relu(e)";
  text.replace(text.find(relu), relu.size(),
               "r = Relu(e)\n m = ReduceMean<axes=[0]>(r)\n f = Add(r, m)");
  const Block block(text);
  const Data data(10);
  const Needs needs{.channels = {Measure::kFisher}};
  const Statistics together = block.measure(needs, data.batches());
  const Batches alone = [&](int64_t) { return data.batches()(1); };
  const Statistics expected = block.measure(needs, alone);
  ASSERT_EQ(block.analysis.coupling.groups.size(), 1U);
  for (const GroupId g : block.analysis.coupling.groups.ids()) {
    const std::vector<double>& each = expected.channels.at(Measure::kFisher)[g];
    ASSERT_FALSE(each.empty());
    expect_near(together.channels.at(Measure::kFisher)[g], at::tensor(each, at::kDouble));
  }
}

/// Where labels are missing the loss is the distance to the network's own outputs.
TEST(Statistics, GradientsWithoutLabels) {
  Data data(40);
  data.labelled = false;
  const Block block;
  for (const Measure measure : {Measure::kTaylorSquared, Measure::kFisher, Measure::kHessian}) {
    const auto of = [&](const Batches& batches) {
      return block.measure({.channels = {measure}}, batches).channels.at(measure)[GroupId(0)];
    };
    const std::vector<double> scores = of(data.batches());
    ASSERT_EQ(scores.size(), static_cast<size_t>(kChannels));
    for (const double score : scores) EXPECT_GT(score, 0);
    EXPECT_EQ(scores, of(data.batches())) << "the same data give the same bits";
    EXPECT_NE(scores, of(Data(40).batches())) << "with labels it is the cross-entropy";
    const Statistics beside =
        block.measure({.channels = {measure, Measure::kTaylor, Measure::kFisher}}, data.batches());
    EXPECT_EQ(scores, beside.channels.at(measure)[GroupId(0)]) << "others change nothing";
  }
}

/// Σ x xᵀ of convolution windows as libtorch cuts them.
at::Tensor moment_of_windows(const at::Tensor& x, int64_t stride) {
  const at::Tensor columns = at::im2col(x, {3, 3}, {1, 1}, {1, 1}, {stride, stride});
  const at::Tensor rows = columns.transpose(1, 2).reshape({-1, columns.size(1)});
  return at::matmul(rows.t(), rows);
}

void expect_moment(const InputMoments& found, const at::Tensor& expected, int64_t rows) {
  EXPECT_EQ(found.rows, rows);
  ASSERT_EQ(found.second.rows(), expected.size(0));
  ASSERT_EQ(found.second.cols(), expected.size(1));
  const double scale = expected.abs().max().item<double>();
  const auto view = expected.contiguous();
  for (int64_t i = 0; i < expected.size(0); ++i) {
    for (int64_t j = 0; j < expected.size(1); ++j) {
      ASSERT_NEAR(found.second(i, j), view[i][j].item<double>(), 1e-5 * scale) << i << ' ' << j;
    }
  }
}

TEST(Statistics, InputMoments) {
  const Block block;
  const Data data(20);
  const Statistics found = block.measure({.inputs = {"W1", "W2", "W3"}}, data.batches());
  Direct direct(block);
  direct.loss(data.x, data.labels);
  expect_moment(found.inputs.at("W1"), moment_of_windows(direct.x, 2), 20 * 16);
  expect_moment(found.inputs.at("W2"), moment_of_windows(direct.c.detach(), 1), 20 * 16);
  const at::Tensor g = direct.f.detach().flatten(1);
  expect_moment(found.inputs.at("W3"), at::matmul(g.t(), g), 20);
}

TEST(Statistics, MemoryDoesNotGrowWithSamples) {
  const Block block;
  const Needs needs{
      {Measure::kZeroShare, Measure::kRank, Measure::kTaylor, Measure::kFisher, Measure::kHessian},
      {"W1", "W2", "W3"}};
  const auto bytes_after = [&](int64_t samples) {
    Measuring measuring(block.graph, block.analysis.facts, block.analysis.coupling, needs);
    const auto feed = Data(samples).batches()(4);
    while (const auto batch = feed()) measuring.add(*batch);
    return measuring.bytes();
  };
  const int64_t bytes = bytes_after(4);
  EXPECT_GT(bytes, 8 * 27 * 27);  // the moments of W1 alone
  EXPECT_EQ(bytes, bytes_after(16));
}

TEST(Statistics, BatchesOfGradientsFitIntoMemory) {
  TextModel model(
      "net (float[N,3,H,W] x) => (float[N,4,H,W] y) { a = Conv(x, W1) b = Relu(a) "
      "y = Conv(b, W2) }",
      {{"W1", "8x3x1x1"}, {"W2", "4x8x1x1"}});
  const Analysis analysis = analyse(model.graph());
  for (const Measure measure : {Measure::kTaylor, Measure::kTaylorSquared}) {
    const Measuring measuring(model.graph(), analysis.facts, analysis.coupling,
                              {.channels = {measure}});
    const auto batch = [&](int64_t side) {
      training::SampleBatch samples;
      samples.inputs = {at::empty({2, 3, side, side})};
      samples.count = 2;
      return measuring.batch(samples);
    };
    EXPECT_EQ(batch(32), 32);
    // 23 values for each of 1024² positions and sample: 92 MiB.
    EXPECT_EQ(batch(1024), 22);
    EXPECT_EQ(batch(8192), 1) << "though it takes more";
  }
}

TEST(Statistics, SameDataSameBits) {
  const Block block;
  const Needs needs{{Measure::kMeanActivation, Measure::kTaylor, Measure::kFisher}, {"W2"}};
  const Statistics first = block.measure(needs, Data(12).batches());
  const Statistics second = block.measure(needs, Data(12).batches());
  EXPECT_EQ(first.channels, second.channels);
  EXPECT_EQ(first.inputs.at("W2").second, second.inputs.at("W2").second);
  EXPECT_NE(first.channels, block.measure(needs, Data(12, 6).batches()).channels);
}

std::string refusal(const Block& block, const Data& data, const Needs& needs) {
  try {
    block.measure(needs, data.batches());
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(Statistics, WhatDoesNotFitIsRefused) {
  Data small(4);
  small.x = small.x.narrow(3, 0, 7);
  EXPECT_EQ(refusal(Block(), small, {{Measure::kZeroShare}}),
            "calibration: the samples have shape [4, 3, 8, 7], the network expects [-1, 3, 8, 8]");
  Data labels(4);
  labels.labels.fill_(4);
  EXPECT_EQ(refusal(Block(), labels, {{Measure::kTaylor}}),
            "calibration: the data has label 4, the network has 4 classes");
  std::string fixed = kBlock;
  fixed.replace(fixed.find("[N,3"), 4, "[8,3");
  fixed.replace(fixed.find("[N,4"), 4, "[8,4");
  EXPECT_EQ(
      refusal(Block(fixed), Data(4), {{Measure::kTaylor}}),
      "calibration: fewer samples than the network's batch size of 8; pass a larger --samples");
  EXPECT_EQ(refusal(Block(fixed), Data(8), {{Measure::kFisher}}),
            "calibration: criteria fisher and obd need batches of one sample, and the network's "
            "batch size is fixed at 8; use taylor, export it with a dynamic batch dimension, or, "
            "where a program has one, read it for a batch of 1 (--input)");
  std::string two = kBlock;
  two.replace(two.find("x) =>"), 5, "x, float[1] z) =>");
  EXPECT_EQ(
      refusal(Block(two), Data(4), {{Measure::kTaylor}}),
      "calibration: the network has 2 inputs, but the data has 1; npz:FILE has an array for each");
}

class CutByData : public ::testing::TestWithParam<const char*> {};

TEST_P(CutByData, EveryKindOfNetwork) {
  const TemporaryFolder folder;
  const auto net = small_net(GetParam(), folder)();
  const int64_t before = size_of(*net);
  PruneServices services;
  services.measure = training::measurement(training::batches_of(small_data(), 64));
  for (const char* criterion : {"taylor", "wanda", "fisher"}) {
    const PruneResult cut =
        net->prune(example(), from_shorthand({.criterion = criterion, .ratio = 0.3}), services);
    EXPECT_FALSE(cut.plan.empty()) << criterion;
    EXPECT_TRUE(cut.proof.holds()) << criterion;
  }
  EXPECT_LT(size_of(*net), before);
}

INSTANTIATE_TEST_SUITE_P(Nets, CutByData, ::testing::Values("live", "onnx", "script"));

}  // namespace
}  // namespace parsimony::test
