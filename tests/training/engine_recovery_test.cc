// Statistics and recovery on engines that take graphs, against those of libtorch.
#include "parsimony/api/recovery/engine_recovery.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <optional>

#include "parsimony/api/calibration_samples.h"
#include "parsimony/api/engines.h"
#include "parsimony/api/measure.h"
#include "parsimony/api/recovery/engine_refit.h"
#include "parsimony/api/recovery/row_sums.h"
#include "parsimony/base/errors.h"
#include "parsimony/data/sample_source.h"
#include "parsimony/torch_io/executor/linear_rows.h"
#include "parsimony/torch_io/network.h"
#include "parsimony/torch_io/tensor.h"
#include "parsimony/training/recovery/recover.h"
#include "parsimony/training/recovery/refit.h"
#include "parsimony/training/statistics/measure.h"
#include "tests/support/model.h"
#include "tests/training/residual_net.h"
#include "tests/training/small_nets.h"

namespace parsimony::training {
namespace {

using test::TextModel;

at::Tensor tensor_in(const Held& value) { return torch_io::to_tensors({bytes_in(value)}).front(); }

double far_apart(const at::Tensor& a, const at::Tensor& b) {
  const at::Tensor wide = b.to(at::kDouble);
  return ((a.to(at::kDouble) - wide).norm() / wide.norm()).item<double>();
}

/// libtorch's executor as such an engine, and ONNX Runtime, where it is installed.
class OnEngine : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    if (GetParam() == std::string("libtorch")) {
      engine_ = std::make_unique<torch_io::TorchEngine>();
      return;
    }
    try {
      engine_ = onnx_runtime_engine(runtime::find_onnx_runtime(), {});
    } catch (const UnsupportedError& error) {
      GTEST_SKIP() << error.what();
    }
  }

  std::unique_ptr<Engine> engine_;
};

INSTANTIATE_TEST_SUITE_P(Engines, OnEngine, ::testing::Values("libtorch", "onnxruntime"));

struct RowsCase {
  const char* text;
  const char* weight;
  Shape x;
  std::vector<int64_t> steps = {};
};

TEST_P(OnEngine, RowsAreThoseOfTheExecutor) {
  const RowsCase layers[] = {
      {"y = Conv<pads=[1,1,1,1]>(x, W)", "4x6x3x3", {2, 6, 9, 8}},
      {"y = Conv<pads=[1,0,2,1], strides=[2,1], dilations=[1,2]>(x, W)", "4x6x3x2", {2, 6, 9, 8}},
      {"y = Conv<pads=[1,1,1,1], group=3>(x, W)", "6x2x3x3", {2, 6, 9, 8}, {2, 3}},
      {"y = Conv<auto_pad=\"SAME_UPPER\", strides=[2,2]>(x, W)", "4x6x3x3", {2, 6, 9, 8}, {2, 2}},
      {"y = Conv<auto_pad=\"SAME_LOWER\", strides=[2,1]>(x, W)", "4x6x3x3", {1, 6, 9, 8}},
      {"y = Conv<strides=[2,2]>(x, W)", "4x6x1x1", {2, 6, 9, 8}, {1, 2}},
      {"y = Conv<pads=[1,1]>(x, W)", "4x6x3", {2, 6, 9}, {4}},
      {"y = Gemm<transB=1>(x, W)", "4x6", {5, 6}},
      {"y = Gemm<transA=1>(x, W)", "6x4", {6, 5}},
      {"y = MatMul(x, W)", "6x4", {2, 3, 6}},
  };
  at::manual_seed(1);
  for (const RowsCase& layer : layers) {
    SCOPED_TRACE(layer.text);
    const TextModel model(std::string("net (float x) => (float y) { ") + layer.text + " }",
                          {{"W", layer.weight}});
    const Node& node = model.graph().nodes[NodeId(0)];
    const Weight& weight = model.graph().weights[WeightId(0)];
    const at::Tensor x = at::randn(layer.x);
    const at::Tensor wanted = linear_rows(node, x, torch_io::to_tensor(weight), layer.steps);
    GraphBuilder builder(kSumsOpset);
    const ValueId input = input_in_floats(builder);
    builder.output(rows_of(builder, {node, weight.dims, 0, layer.steps}, input, layer.x));
    const auto part = part_on(*engine_, builder.finished());
    const at::Tensor found = tensor_in(part->run(held(torch_io::to_bytes({x}))).front());
    ASSERT_TRUE(found.sizes().equals(wanted.sizes()));
    EXPECT_TRUE(at::equal(found, wanted));
  }
}

TEST_P(OnEngine, MomentsAreThoseOfLibtorch) {
  const TextModel model(test::kResidualNet, test::residual_weights());
  Graph graph = model.graph();
  const Analysis analysis = analyse(graph);
  Needs needs;
  needs.channels = {Measure::kZeroShare, Measure::kMeanActivation, Measure::kActivationNorm,
                    Measure::kRank};
  needs.inputs = {"W1", "W2", "W3", "W4"};
  const CalibrationData job{.data = "random:32"};
  const auto data = std::make_shared<const SampleSource>(job.data, graph, sample_options(job));
  const Statistics wanted =
      measure(graph, analysis.facts, analysis.coupling, needs, batches_of(data, 32));
  const Statistics found =
      measure_on(*engine_, graph, analysis.facts, analysis.coupling, needs, job);
  EXPECT_EQ(found.samples, 32);
  EXPECT_EQ(found.groups, wanted.groups);
  ASSERT_EQ(found.channels.size(), 4U);
  for (const auto& [kind, groups] : wanted.channels) {
    for (const Group& group : analysis.coupling.groups) {
      const auto a = found.of(kind, group);
      const auto b = wanted.of(kind, group);
      ASSERT_EQ(a.size(), b.size());
      ASSERT_FALSE(a.empty());
      for (size_t c = 0; c < a.size(); ++c) EXPECT_NEAR(a[c], b[c], 1e-4 * std::abs(b[c]) + 1e-9);
    }
  }
  ASSERT_EQ(found.inputs.size(), 4U);
  for (const auto& [name, moments] : wanted.inputs) {
    EXPECT_EQ(found.inputs.at(name).rows, moments.rows) << name;
    EXPECT_TRUE(found.inputs.at(name).second.isApprox(moments.second, 1e-5)) << name;
  }
}

/// A pruned network, and recovery from random samples.
struct PrunedOnEngine {
  TextModel model;
  Pruning pruning;
  CalibrationData job{.data = "random:48"};

  PrunedOnEngine() : model(test::kResidualNet, test::residual_weights()) {
    pruning = plan_pruning(model.graph(), from_shorthand({.criterion = "l1", .ratio = 0.5}));
  }

  Recovered on(Engine& engine, RecoveryMethod method) const {
    RecoverySettings settings;
    settings.steps = {method};
    return recover_on(engine, model.graph(), pruning.plan, settings, job);
  }
  Recovered on_libtorch(RecoveryMethod method) const {
    RecoverySettings settings;
    settings.steps = {method};
    const auto data =
        std::make_shared<const SampleSource>(job.data, model.graph(), sample_options(job));
    return recover(model.graph(), pruning.plan, calibration_of(data, 48), settings);
  }
};

TEST_P(OnEngine, RecoveryIsThatOfLibtorch) {
  using enum RecoveryMethod;
  const PrunedOnEngine net;
  for (const RecoveryMethod method : {kBias, kBatchNorm, kLeastSquares}) {
    SCOPED_TRACE(name_of(method));
    const Recovered wanted = net.on_libtorch(method);
    const Recovered found = net.on(*engine_, method);
    const RecoveryStep& step = found.report.steps.front();
    EXPECT_GT(step.layers, 0);
    EXPECT_EQ(step.layers, wanted.report.steps.front().layers);
    EXPECT_NEAR(found.report.before.error, wanted.report.before.error, 1e-5);
    EXPECT_NEAR(step.after.error, wanted.report.steps.front().after.error, 1e-4);
    EXPECT_EQ(found.report.notes, wanted.report.notes);
    const std::vector<LayerRecovery>& fits = wanted.report.steps.front().fits;
    EXPECT_EQ(fits.empty(), method == kBatchNorm);
    ASSERT_EQ(step.fits.size(), fits.size());
    for (size_t i = 0; i < fits.size(); ++i) {
      EXPECT_EQ(step.fits[i].layer, fits[i].layer);
      EXPECT_EQ(step.fits[i].ridge, fits[i].ridge);
      EXPECT_EQ(step.fits[i].kept, fits[i].kept);
      ASSERT_TRUE(step.fits[i].before && step.fits[i].after);
      EXPECT_NEAR(*step.fits[i].before, *fits[i].before, 1e-4);
      EXPECT_NEAR(*step.fits[i].after, *fits[i].after, 1e-4);
    }
    ASSERT_EQ(found.updates.size(), wanted.updates.size());
    for (size_t i = 0; i < found.updates.size(); ++i) {
      const auto floats = [](const TensorUpdate& update) {
        return at::from_blob(const_cast<std::byte*>(update.values.data()),
                             {std::ssize(update.values) / 4}, at::kFloat);
      };
      EXPECT_EQ(found.updates[i].tensor, wanted.updates[i].tensor);
      EXPECT_LT(far_apart(floats(found.updates[i]), floats(wanted.updates[i])), 1e-3)
          << found.updates[i].tensor;
    }
  }
}

TEST_P(OnEngine, ADataSetIsThatOfLibtorch) {
  PrunedOnEngine net;
  net.job.data = "shapes:48,80";
  net.job.samples = 48;
  net.job.mean = {0.5, 0.4, 0.3};
  net.job.deviation = {0.2, 0.3, 0.4};
  const Recovered wanted = net.on_libtorch(RecoveryMethod::kBias);
  const Recovered found = net.on(*engine_, RecoveryMethod::kBias);
  EXPECT_EQ(found.report.test_samples, 80);
  EXPECT_EQ(found.report.test_samples, wanted.report.test_samples);
  ASSERT_TRUE(wanted.report.dense_accuracy);
  EXPECT_EQ(found.report.dense_accuracy, wanted.report.dense_accuracy);
  EXPECT_NEAR(found.report.before.error, wanted.report.before.error, 1e-5);
  const RecoveryState& after = found.report.steps.front().after;
  EXPECT_NEAR(after.error, wanted.report.steps.front().after.error, 1e-4);
  EXPECT_EQ(after.accuracy, wanted.report.steps.front().after.accuracy);
  EXPECT_FALSE(after.test_error);
}

TEST_P(OnEngine, WhatItDoesNotFitIsListed) {
  TextModel model(R"(net (float[N,3,8,8] x) => (float[N,4,9,9] y)
                     { a = Conv(x, W1, B1)
                       b = Relu(a)
                       y = ConvTranspose(b, W2, B2) })",
                  {{"W1", "8x3x1x1"}, {"B1", "8"}, {"W2", "8x4x2x2"}, {"B2", "4"}});
  const Pruning pruning =
      plan_pruning(model.graph(), from_shorthand({.criterion = "l1", .ratio = 0.5}));
  RecoverySettings settings;
  settings.steps = {RecoveryMethod::kLeastSquares};
  const CalibrationData job{.data = "random:8"};
  const RecoveryReport report =
      recover_on(*engine_, model.graph(), pruning.plan, settings, job).report;
  ASSERT_FALSE(report.notes.empty());
  EXPECT_EQ(report.notes.front(),
            "--recover least-squares leaves 1 layer as before (fitted by libtorch only): y");
}

}  // namespace
}  // namespace parsimony::training
