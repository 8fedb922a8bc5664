// Recovery on small networks: what each step changes, and that a plan repeats it.
#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>
#include <ATen/core/grad_mode.h>
#include <gtest/gtest.h>

#include <Eigen/QR>
#include <cmath>
#include <limits>

#include "parsimony/api/prune.h"
#include "parsimony/base/errors.h"
#include "parsimony/base/files.h"
#include "parsimony/onnx_io/editor.h"
#include "parsimony/speedup/small_network.h"
#include "parsimony/torch_io/executor/graph_module.h"
#include "parsimony/torch_io/tensor.h"
#include "parsimony/training/net/graph_net.h"
#include "parsimony/training/recovery/recover.h"
#include "tests/support/message_of.h"
#include "tests/support/model.h"
#include "tests/training/refitting.h"
#include "tests/training/residual_net.h"
#include "tests/training/small_nets.h"

namespace parsimony::training {
namespace {

using test::answer_rows;
using test::estimate_batch_norms;
using test::message_of;
using test::output_error;
using test::refit;
using test::TextModel;

struct Pruned {
  TextModel model;
  Pruning pruning;
  Batches batches = batches_of(test::small_data(), 48);

  explicit Pruned(double ratio = 0.5, const std::string& net = test::kResidualNet)
      : model{net, test::residual_weights()} {
    pruning = plan_pruning(model.graph(), from_shorthand({.criterion = "l1", .ratio = ratio}));
    EXPECT_GE(pruning.plan.groups.size(), 2U);
  }
  const Graph& graph() const { return model.graph(); }
  const Plan& plan() const { return pruning.plan; }
  Recovered recovered(std::vector<RecoveryMethod> steps) const {
    RecoverySettings options;
    options.finetune = {};
    options.steps = std::move(steps);
    options.finetune.epochs = 2;
    options.finetune.lr = 1e-3;
    return recover(graph(), plan(), test::small_data(), options, 48);
  }
};

const Weight& named(const Graph& graph, const std::string& name) {
  for (const Weight& weight : graph.weights) {
    if (weight.name == name) return weight;
  }
  throw ModelError("no weight " + name);
}

at::Tensor tensor(const Graph& graph, const std::string& name) {
  return torch_io::to_tensor(named(graph, name));
}

/// Every batch's values, one after the other.
at::Tensor all(const Graph& graph, const std::string& value, const Batches& batches) {
  const at::NoGradGuard no_grad;
  Graph part = graph;
  part.outputs = {graph.find(value)};
  GraphModule module(part);
  std::vector<at::Tensor> parts;
  const BatchSource feed = batches(16);
  while (const auto batch = feed()) parts.push_back(module->forward(batch->inputs).front());
  return at::cat(parts);
}

Eigen::MatrixXd matrix(const at::Tensor& tensor) {
  const at::Tensor wide = tensor.to(at::kDouble).contiguous();
  using RowMajor = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
  return Eigen::Map<const RowMajor>(wide.data_ptr<double>(), wide.size(0), wide.size(1));
}

/// The layer's new weight by QR in double on all samples at once, without sums.
at::Tensor by_qr(const at::Tensor& rows, const at::Tensor& lack, double ridge) {
  Eigen::MatrixXd x(rows.size(0), rows.size(1) + 1);
  x << matrix(rows), Eigen::VectorXd::Ones(rows.size(0));
  const double lambda = ridge * x.squaredNorm() / static_cast<double>(x.cols());
  Eigen::MatrixXd system(x.rows() + x.cols(), x.cols());
  system << x, Eigen::MatrixXd::Identity(x.cols(), x.cols()) * std::sqrt(lambda);
  Eigen::MatrixXd expected = Eigen::MatrixXd::Zero(system.rows(), lack.size(1));
  expected.topRows(x.rows()) = matrix(lack);
  const Eigen::MatrixXd found = system.colPivHouseholderQr().solve(expected);
  const at::Tensor result = at::empty({found.cols(), found.rows()}, at::kDouble);
  std::copy(found.data(), found.data() + found.size(), result.data_ptr<double>());
  return result;
}

double apart(const at::Tensor& a, const at::Tensor& b) {
  const at::Tensor wide = b.to(at::kDouble);
  return ((a.to(at::kDouble) - wide).norm() / wide.norm()).item<double>();
}

struct FittedLayer {
  const char* answer;
  const char* input;
  const char* weight;
  const char* shift;
  size_t node;
  int64_t axis = 1;
  int64_t groups = 1;
};

/// The sums are of numbers in float32, and the ridge bounds the condition number of the system.
constexpr double kRidge = 1e-3;
constexpr double kSolved = std::numeric_limits<float>::epsilon() / 2 / kRidge;

TEST(Recover, StepsStayWhereErrorsCannotBeCompared) {
  std::string net = test::kResidualNet;
  const std::string last = "y = Gemm<transB=1>(j, W4, B4)";
  net.replace(net.find(last), last.size(),
              "k = Gemm<transB=1>(j, W4, B4) l = Relu(k) y = Log(l)");  // minus infinity
  const Recovered found = Pruned(0.5, net).recovered({RecoveryMethod::kLeastSquares});
  EXPECT_TRUE(std::isnan(found.report.before.error));
  EXPECT_GT(found.report.steps[0].layers, 0);
  EXPECT_FALSE(found.updates.empty());
}

TEST(Recover, AStepThatIsWorseOnHeldOutSamplesIsUndone) {
  const Pruned pruned;
  Calibration data;
  data.samples = 64;
  data.batches = [](int64_t size) -> BatchSource {  // nothing like what it is for
    return [size, left = int64_t{64}]() mutable -> std::optional<SampleBatch> {
      const int64_t count = std::min(size, left);
      if (count == 0) return {};
      left -= count;
      SampleBatch batch;
      batch.inputs = {at::full({count, 3, 32, 32}, 40.)};
      batch.count = count;
      return batch;
    };
  };
  data.held_out = pruned.batches;
  data.held_out_samples = 48;
  RecoverySettings settings;
  settings.steps = {RecoveryMethod::kBias, RecoveryMethod::kOutputs};
  settings.outputs.epochs = 2;
  settings.outputs.lr = 1;
  const Recovered found = recover(pruned.graph(), pruned.plan(), data, settings);
  EXPECT_TRUE(found.updates.empty());
  ASSERT_EQ(found.report.steps.size(), 2U);
  for (const RecoveryStep& step : found.report.steps) {
    EXPECT_EQ(step.layers, 0);
    EXPECT_EQ(step.after.test_error, found.report.before.test_error);
  }
  ASSERT_EQ(found.report.notes.size(), 2U);
  EXPECT_EQ(
      found.report.notes[0].find(
          "--recover bias was undone: it increased the output error on held-out samples from"),
      0U)
      << found.report.notes[0];

  settings.steps = {RecoveryMethod::kOutputs};
  settings.outputs.epochs = 30;
  settings.outputs.lr = 0.7;
  const auto matched = [&] {
    return recover(pruned.graph(), pruned.plan(), data, settings).report.steps.front();
  };
  EXPECT_EQ(matched().layers, 0);
  settings.outputs.terms = {{"y", 2}};
  EXPECT_GT(matched().layers, 0) << "who weighs outputs decides by their loss";
  EXPECT_GT(matched().after.test_error, found.report.before.test_error);
}

/// One sample at a time has few rows, which are summed together.
class RefitOf : public ::testing::TestWithParam<int64_t> {};

INSTANTIATE_TEST_SUITE_P(Batches, RefitOf, ::testing::Values(16, 1));

TEST_P(RefitOf, EqualsADenseSolveInDoubleForEveryLayer) {
  const Pruned net;
  const FittedLayer layers[] = {
      {"d", "b", "W2", "mean", 2}, {"g", "e", "W3", "B3", 5, 1, 2}, {"y", "j", "W4", "B4", 10, -1}};
  SmallNetwork small(net.graph(), net.plan());
  const SmallNetwork before(net.graph(), net.plan());
  refit(net.graph(), small, {}, net.batches, {.ridge = kRidge, .rounds = 1, .batch = GetParam()});
  for (const FittedLayer& layer : layers) {
    SCOPED_TRACE(layer.weight);
    // What the layer was fitted from: those before it as they are now, itself as it was.
    Graph mixed = small.graph();
    for (Weight& w : mixed.weights) {
      if (w.name == layer.weight || w.name == layer.shift) w = named(before.graph(), w.name);
    }
    const at::Tensor old = tensor(mixed, layer.weight);
    at::Tensor dense = all(net.graph(), layer.answer, net.batches);
    const auto kept = small.kept(layer.weight, 0);
    if (!kept.empty()) dense = dense.index_select(layer.axis, at::tensor(kept, at::kLong));
    const at::Tensor lack =
        answer_rows(dense - all(mixed, layer.answer, net.batches), layer.axis, layer.groups);
    torch_io::TorchEngine engine;
    const at::Tensor rows =
        test::rows_of(engine, {small.graph().nodes[NodeId(layer.node)], old.sizes().vec()},
                      all(mixed, layer.input, net.batches));
    ASSERT_EQ(rows.size(0), layer.groups);
    std::vector<at::Tensor> changes;
    for (int64_t g = 0; g < layer.groups; ++g) changes.push_back(by_qr(rows[g], lack[g], kRidge));
    at::Tensor change = at::cat(changes);
    if (layer.answer == std::string("d")) {
      const at::Tensor scale = tensor(mixed, "gamma") / (tensor(mixed, "var") + 1e-5).sqrt();
      change = change / scale.unsqueeze(1);
    }
    const at::Tensor expected =
        old.to(at::kDouble) + change.narrow(1, 0, change.size(1) - 1).reshape(old.sizes());
    EXPECT_LT(apart(tensor(small.graph(), layer.weight), expected), kSolved);
  }
}

TEST(Refit, LeavesNoLayerFurtherFromTheDenseOneThanBefore) {
  const Pruned net;
  const auto error = [&](const SmallNetwork& small, const char* value, const char* weight) {
    at::Tensor dense = all(net.graph(), value, net.batches);
    const auto kept = small.kept(weight, 0);
    if (!kept.empty()) dense = dense.index_select(1, at::tensor(kept, at::kLong));
    return apart(all(small.graph(), value, net.batches), dense);
  };
  SmallNetwork small(net.graph(), net.plan());
  const double sum_before = error(small, "h", "W3");
  const double norm_before = error(small, "e", "W2");
  const double answer_before = output_error(net.graph(), small, net.batches, 16);
  EXPECT_EQ(refit(net.graph(), small, {}, net.batches, {.batch = 16}), 3);
  EXPECT_LT(error(small, "e", "W2"), norm_before);
  EXPECT_LT(error(small, "h", "W3"), sum_before);
  EXPECT_LT(output_error(net.graph(), small, net.batches, 16), answer_before / 2);
}

TEST(Refit, MoreRoundsInFrontOfAReluComeCloser) {
  const Pruned net;
  const auto after = [&](int rounds) {
    SmallNetwork small(net.graph(), net.plan());
    refit(net.graph(), small, {"W3", "W4"}, net.batches, {.rounds = rounds, .batch = 16});
    at::Tensor dense = all(net.graph(), "e", net.batches);
    dense = dense.index_select(1, at::tensor(small.kept("W2", 0), at::kLong));
    return apart(all(small.graph(), "e", net.batches), dense);
  };
  EXPECT_LT(after(4), after(1));
}

// It would take 64 if it could.
TEST(Refit, TakesAsManySamplesAsFitIntoMemory) {
  TextModel model(R"(
      net (float[1,3,32,32] x) => (float[1,4,4,4] y)
      { a = Conv(x, W1, B1)
        b = Relu(a)
        y = Conv<strides=[8,8]>(b, W2) })",
                  {{"W1", "64x3x1x1"}, {"B1", "64"}, {"W2", "4x64x1x1"}});
  const Pruning pruning =
      plan_pruning(model.graph(), from_shorthand({.criterion = "l1", .ratio = 0.25}));
  const Batches batches = [](int64_t) -> BatchSource {
    return [left = 64]() mutable -> std::optional<SampleBatch> {
      if (left-- == 0) return {};
      SampleBatch batch;
      batch.inputs = {at::randn({1, 3, 32, 32}, at::detail::createCPUGenerator(left))};
      batch.count = 1;
      return batch;
    };
  };
  SmallNetwork small(model.graph(), pruning.plan);
  const RefitOptions options{.rounds = 1, .batch = 1, .most_bytes = 5 << 20};
  EXPECT_EQ(refit(model.graph(), small, {}, batches, options), 1);
}

TEST(Refit, DoesNotDependOnHowManySamplesRunAtOnce) {
  const Pruned net;
  SmallNetwork one(net.graph(), net.plan());
  SmallNetwork other(net.graph(), net.plan());
  refit(net.graph(), one, {}, net.batches, {.ridge = 1e-3, .rounds = 1, .batch = 48});
  refit(net.graph(), other, {}, net.batches, {.ridge = 1e-3, .rounds = 1, .batch = 5});
  for (const char* name : {"W2", "W3", "W4", "B4"}) {
    EXPECT_LT(apart(tensor(one.graph(), name), tensor(other.graph(), name)), 1e-4) << name;
  }
}

/// Of what half of the hidden units gave, the other half, odd functions of other directions, tells
/// little; few samples teach noise.
struct Overfitted {
  TextModel model{R"(net (float[N,24] x) => (float[N,4] y)
                     { a = Gemm<transB=1>(x, W1)
                       b = Tanh(a)
                       y = Gemm<transB=1>(b, W2) })",
                  {{"W1", "24x24"}, {"W2", "4x24"}}};
  Pruning pruning = plan_pruning(model.graph(), from_shorthand({.criterion = "l1", .ratio = 0.5}));

  static Batches samples(int64_t count, uint64_t seed) {
    return [=](int64_t size) -> BatchSource {
      const at::Tensor all = at::randn({count, 24}, at::detail::createCPUGenerator(seed));
      return [all, size, next = int64_t{0}]() mutable -> std::optional<SampleBatch> {
        if (next >= all.size(0)) return {};
        SampleBatch batch;
        batch.inputs = {all.slice(0, next, next + size)};
        batch.count = batch.inputs[0].size(0);
        next += size;
        return batch;
      };
    };
  }
  double error(const SmallNetwork& small) const {
    return output_error(model.graph(), small, samples(2000, 7), 500);
  }
};

TEST(Refit, ALayerThatFitsWorseOnHeldOutSamplesKeepsItsWeights) {
  const Overfitted net;
  SmallNetwork small(net.model.graph(), net.pruning.plan);
  RefitLog log;
  const RefitOptions options{.ridge = 1e-6, .batch = fit_batch(15, 64), .log = &log};
  EXPECT_EQ(refit(net.model.graph(), small, {}, Overfitted::samples(15, 3), options), 0);
  EXPECT_TRUE(small.updates().empty());
  ASSERT_EQ(log.fits.size(), 1U);
  const LayerRecovery& fit = log.fits.front();
  EXPECT_EQ(fit.layer, "y");
  EXPECT_TRUE(fit.kept);
  EXPECT_EQ(fit.ridge, 1e-6);
  ASSERT_TRUE(fit.before && fit.after);
  EXPECT_GT(*fit.after, *fit.before);
  EXPECT_NEAR(*fit.before, net.error(small), 0.3);
}

TEST(Refit, FewSamplesMakeANetworkNoWorseOnOthers) {
  const Overfitted net;
  const double cut = net.error(SmallNetwork(net.model.graph(), net.pruning.plan));
  const auto error = [&](int64_t count, int64_t batch) {
    SmallNetwork small(net.model.graph(), net.pruning.plan);
    refit(net.model.graph(), small, {}, Overfitted::samples(count, 3), {.batch = batch});
    return net.error(small);
  };
  EXPECT_GT(error(15, 15), 1.2 * cut) << "nothing is held out of one batch";
  EXPECT_LT(error(15, fit_batch(15, 64)), 1.05 * cut);
  EXPECT_LT(error(1000, fit_batch(1000, 64)), 0.99 * cut);
}

TEST(Refit, FewerThanFiveBatchesHoldOutTheLast) {
  const Overfitted net;
  for (const int64_t batches : {1, 2, 4}) {
    SmallNetwork small(net.model.graph(), net.pruning.plan);
    RefitLog log;
    const RefitOptions options{.batch = 20, .log = &log};
    refit(net.model.graph(), small, {}, Overfitted::samples(20 * batches, 3), options);
    ASSERT_FALSE(log.fits.empty());
    EXPECT_EQ(log.fits.back().layer, "y");
    EXPECT_EQ(log.fits.back().after.has_value(), batches > 1) << batches;
    EXPECT_TRUE(batches > 1 || log.fits.back().ridge == 1e-3);
  }
  EXPECT_EQ(fit_batch(3, 64), 1);
  EXPECT_EQ(fit_batch(16, 64), 3);
  EXPECT_EQ(fit_batch(512, 64), 12);
  EXPECT_EQ(fit_batch(512, 4), 4);
}

TEST(Refit, ANetworkThatLacksNothingStaysAsItIs) {
  const Pruned net;
  SmallNetwork whole(net.graph(), Plan());
  EXPECT_EQ(refit(net.graph(), whole, {}, net.batches, {.batch = 16}), 0);
  EXPECT_TRUE(whole.updates().empty());
}

TEST(Refit, AMatrixThatIsTransposedBeforeItsProductIsFittedAlike) {
  const std::string product = "y = Gemm<transB=1>(j, W4, B4)";
  std::string net = test::kResidualNet;
  net.replace(net.find(product), product.size(),
              "t = Transpose(W4)\n m = MatMul(j, t)\n y = Add(m, B4)");
  const Pruned apart_again(0.5, net);
  const Pruned in_one;
  SmallNetwork small(apart_again.graph(), apart_again.plan());
  SmallNetwork expected(in_one.graph(), in_one.plan());
  const RefitOptions options{.rounds = 1, .batch = 16};
  EXPECT_EQ(refit(apart_again.graph(), small, {}, apart_again.batches, options),
            refit(in_one.graph(), expected, {}, in_one.batches, options));
  const at::Tensor before = tensor(SmallNetwork(in_one.graph(), in_one.plan()).graph(), "W4");
  EXPECT_LT(apart(tensor(small.graph(), "W4"), tensor(expected.graph(), "W4")), 1e-4);
  EXPECT_GT(apart(tensor(small.graph(), "W4"), before), 1e-2);
}

TEST(Refit, BiasGivesTheAnswersTheirMeans) {
  const Pruned net;
  SmallNetwork small(net.graph(), net.plan());
  const at::Tensor matrix_before = tensor(small.graph(), "W4");
  refit(net.graph(), small, {}, net.batches, {.weights = false, .batch = 16});
  const at::Tensor found = all(small.graph(), "y", net.batches).mean(0);
  const at::Tensor expected = all(net.graph(), "y", net.batches).mean(0);
  EXPECT_LT(apart(found, expected), 1e-4);
  at::Tensor dense = all(net.graph(), "d", net.batches).mean({0, 2, 3});
  dense = dense.index_select(0, at::tensor(small.kept("W2", 0), at::kLong));
  EXPECT_LT(apart(all(small.graph(), "d", net.batches).mean({0, 2, 3}), dense), 1e-4);
  EXPECT_TRUE(at::equal(tensor(small.graph(), "W4"), matrix_before));
}

TEST(EstimateBatchNorms, GivesThemTheMomentsOfWhatTheyRead) {
  const Pruned net;
  SmallNetwork small(net.graph(), net.plan());
  EXPECT_EQ(estimate_batch_norms(small, net.batches, 16), 1);
  const at::Tensor read = all(small.graph(), "c", net.batches).movedim(1, 0).flatten(1);
  EXPECT_LT(apart(tensor(small.graph(), "mean"), read.mean(1)), 1e-5);
  EXPECT_LT(apart(tensor(small.graph(), "var"), read.var(1, false)), 1e-5);
}

TEST(Recover, ReportsEveryStepAndTellsWhatChanged) {
  const Pruned net;
  const Recovered result =
      net.recovered({RecoveryMethod::kBias, RecoveryMethod::kBatchNorm,
                     RecoveryMethod::kLeastSquares, RecoveryMethod::kFinetune});
  const RecoveryReport& report = result.report;
  ASSERT_EQ(report.steps.size(), 4U);
  EXPECT_EQ(report.samples, 48);
  EXPECT_EQ(report.test_samples, 64);
  ASSERT_TRUE(report.dense_accuracy);
  EXPECT_GT(report.before.error, 0.05);
  EXPECT_LT(report.steps[0].after.error, report.before.error);
  EXPECT_LT(report.steps[2].after.error, report.steps[1].after.error);
  for (const TensorUpdate& update : result.updates) {
    EXPECT_FALSE(update.values.empty()) << update.tensor;
    EXPECT_NE(update.reason.find("fine-tuning"), std::string::npos) << update.tensor;
  }
  SmallNetwork small(net.graph(), net.plan());
  EXPECT_EQ(output_error(net.graph(), small, net.batches, 64), report.before.error);
}

TEST(Recover, TheDenseNetworkTeachesFineTuning) {
  const Pruned net;
  const auto error = [&](double distill) {
    RecoverySettings options;
    options.finetune = {};
    options.steps = {RecoveryMethod::kFinetune};
    options.finetune.epochs = 8;
    options.finetune.distill = distill;
    return recover(net.graph(), net.plan(), test::small_data(), options, 48)
        .report.steps[0]
        .after.error;
  };
  EXPECT_LT(error(1), 0.9 * error(0));
}

TEST(Recover, ThePlanRepeatsItByteForByte) {
  const Pruned net;
  const Recovered result = net.recovered({RecoveryMethod::kLeastSquares});
  const test::TemporaryFolder folder;
  const auto written = [&](const std::string& name, const auto& edit) {
    Pruned own;
    onnx_io::OnnxEditor editor(own.model.file());
    edit(own, editor);
    own.model.file().write(folder / name);
    return read_file(folder / name);
  };
  const std::string first = written("a.onnx", [&](Pruned& own, ModelEditor& editor) {
    apply_plan(own.plan(), own.graph(), own.pruning.analysis.probe, editor);
    for (const TensorUpdate& update : result.updates) editor.assign(update.tensor, update.values);
  });
  Plan plan = net.plan();
  plan.updates = result.updates;
  const std::string again = written("b.onnx", [&](Pruned& own, ModelEditor& editor) {
    apply_plan(plan, own.graph(), own.pruning.analysis.probe, editor);
  });
  EXPECT_EQ(first, again);
  const SmallNetwork small(net.graph(), plan);
  EXPECT_EQ(output_error(net.graph(), small, net.batches, 64), result.report.steps[0].after.error);
}

TEST(Recover, WhatLevelPruningZeroedStaysZero) {
  Pruned net;
  Plan plan = net.plan();
  plan.zeros = {{"W3", 400}};
  plan.updates = {{"W3", "its smallest elements are zero"}};
  RecoverySettings options;
  options.finetune = {};
  options.steps = {RecoveryMethod::kLeastSquares, RecoveryMethod::kFinetune};
  options.finetune.epochs = 1;
  const Recovered result = recover(net.graph(), plan, test::small_data(), options);
  plan.updates = result.updates;
  const SmallNetwork before(net.graph(), [&] {
    Plan zeroed = plan;
    zeroed.updates = {{"W3", "its smallest elements are zero"}};
    return zeroed;
  }());
  const SmallNetwork after(net.graph(), plan);
  const at::Tensor zero = tensor(before.graph(), "W3").eq(0);
  EXPECT_GT(zero.sum().item<int64_t>(), 50);
  EXPECT_TRUE(at::equal(tensor(after.graph(), "W3").eq(0), zero));
  EXPECT_FALSE(at::equal(tensor(after.graph(), "W3"), tensor(before.graph(), "W3")));
}

TEST(Recover, SaysWhatItCannotDo) {
  const TextModel two("net (float[N,3] x, float[N,3] z) => (float[N,3] y) { y = Add(x, z) }", {});
  EXPECT_EQ(
      message_of([&] { recover(two.graph(), {}, test::small_data(), {}); }),
      "calibration: the network has 2 inputs, but the data has 1; npz:FILE has an array for each");
  EXPECT_EQ(
      message_of([&] { parse_recovery("least_squares", "--recover"); }),
      "--recover: unknown recovery \"least_squares\"; expected bias, bn, least-squares, outputs, "
      "outputs:blocks, finetune. Did you mean \"least-squares\"?");
}

}  // namespace
}  // namespace parsimony::training
