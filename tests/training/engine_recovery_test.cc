// Statistics and recovery on engines that take graphs, against those of libtorch.
#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "parsimony/api/calibration_samples.h"
#include "parsimony/api/engines.h"
#include "parsimony/api/measure.h"
#include "parsimony/api/recovery/recover.h"
#include "parsimony/api/recovery/row_sums.h"
#include "parsimony/api/taken_branches.h"
#include "parsimony/base/errors.h"
#include "parsimony/data/dataset.h"
#include "parsimony/data/sample_source.h"
#include "parsimony/graph/attributes.h"
#include "parsimony/graph/interface.h"
#include "parsimony/torch_io/executor/graph_module.h"
#include "parsimony/torch_io/network.h"
#include "parsimony/torch_io/tensor.h"
#include "parsimony/training/recovery/recover.h"
#include "parsimony/training/statistics/measure.h"
#include "tests/support/model.h"
#include "tests/training/refitting.h"
#include "tests/training/residual_net.h"
#include "tests/training/small_nets.h"

namespace parsimony::training {
namespace {

using test::TextModel;

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
  const char* layer;
  Shape x;
  const char* weight;
  std::vector<int64_t> steps = {};
};

const RowsCase kLayers[] = {
    {"Conv", {2, 3, 7, 7}, "5x3x3x3"},
    {"Conv<pads=[1,1,1,1]>", {2, 6, 9, 8}, "4x6x3x3"},
    {"Conv<pads=[1,0,2,1], strides=[2,1]>", {2, 3, 7, 6}, "5x3x3x2"},
    {"Conv<pads=[1,0,2,1], strides=[2,1], dilations=[1,2]>", {2, 6, 9, 8}, "4x6x3x2"},
    {"Conv<pads=[2,2,2,2], dilations=[2,3]>", {2, 3, 9, 9}, "4x3x3x2"},
    {"Conv<group=3, pads=[1,1,1,1]>", {2, 6, 9, 8}, "9x2x3x3"},
    {"Conv<group=4>", {2, 4, 5, 5}, "8x1x3x3"},
    {"Conv<auto_pad=\"SAME_UPPER\", strides=[2,2]>", {2, 6, 9, 8}, "4x6x3x3"},
    {"Conv<auto_pad=\"SAME_LOWER\", strides=[2,1]>", {1, 6, 9, 8}, "4x6x3x3"},
    {"Conv<strides=[2,2]>", {2, 6, 9, 8}, "4x6x1x1"},
    {"Conv<pads=[1,1], strides=[2]>", {2, 3, 9}, "4x3x3"},
    {"Conv<strides=[1,2,1]>", {1, 2, 4, 5, 4}, "3x2x2x2x2"},
    {"ConvTranspose", {2, 3, 5, 5}, "3x4x3x3"},
    {"ConvTranspose<strides=[2,3], pads=[1,0,2,1]>", {2, 3, 5, 4}, "3x4x3x2"},
    {"ConvTranspose<strides=[2,2], dilations=[2,1]>", {2, 3, 5, 4}, "3x4x2x3"},
    {"ConvTranspose<strides=[2,2], pads=[1,1,1,1], output_padding=[1,1]>", {1, 2, 4, 4}, "2x3x3x3"},
    {"ConvTranspose<group=2, strides=[2]>", {2, 4, 7}, "4x3x4"},
    {"ConvTranspose<group=4, pads=[3,3]>", {2, 4, 9}, "4x1x2"},
    {"Gemm<transB=1>", {5, 6}, "4x6"},
    {"Gemm", {4, 6}, "6x3"},
    {"Gemm<transA=1>", {6, 5}, "6x4"},
    {"MatMul", {2, 3, 6}, "6x4"},
};

/// The layer's rows times its matrix, and its answer in rows, at every so many positions.
void expect_answer(Engine& engine, const RowsCase& layer, const std::vector<int64_t>& steps) {
  SCOPED_TRACE(layer.layer);
  const TextModel model(std::string("net (float x) => (float y) { y = ") + layer.layer + "(x, W) }",
                        {{"W", layer.weight}});
  const Graph& graph = model.graph();
  const Node& node = graph.nodes[NodeId(0)];
  const Weight& weight = graph.weights[WeightId(0)];
  const at::Tensor x = at::randn(layer.x);
  GraphModule module(graph);
  at::Tensor y = module->forward(x).detach();
  for (size_t i = 0; i < steps.size(); ++i) {
    const auto axis = static_cast<int64_t>(i) + 2;
    y = y.slice(axis, 0, y.size(axis), steps[i]);
  }
  const int64_t groups = groups_of_layer(node);
  const bool convolves = node.op.starts_with("Conv");
  const at::Tensor expected = test::answer_rows(y, convolves ? 1 : -1, groups);
  const at::Tensor rows = test::rows_of(engine, {node, weight.dims, 0, steps}, x);
  at::Tensor matrix = torch_io::to_tensor(weight);
  if (node.op == "ConvTranspose") {  // [(g i) o ..k] as [g o (i k)]
    matrix = matrix.reshape({groups, matrix.size(0) / groups, matrix.size(1), -1}).transpose(1, 2);
  } else if (!convolves && attr(node, "transB", 0) == 0) {
    matrix = matrix.t();
  }
  ASSERT_EQ(rows.size(0), groups);
  const at::Tensor found =
      at::matmul(rows, matrix.reshape({groups, -1, rows.size(2)}).transpose(1, 2));
  ASSERT_EQ(found.sizes(), expected.sizes());
  EXPECT_TRUE(at::allclose(found, expected, 1e-4, 1e-4));
}

TEST_P(OnEngine, RowsTimesTheMatrixAreTheAnswer) {
  at::manual_seed(1);
  for (const RowsCase& layer : kLayers) {
    expect_answer(*engine_, layer, {});
    if (!std::string(layer.layer).starts_with("Conv")) continue;
    std::vector<int64_t> steps(layer.x.size() - 2, 3);
    steps[0] = 2;
    expect_answer(*engine_, layer, steps);
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
  const Statistics expected =
      measure(graph, analysis.facts, analysis.coupling, needs, batches_of(data, 32));
  const Statistics found =
      measure_on(*engine_, graph, analysis.facts, analysis.coupling, needs, runs_of(job, graph));
  EXPECT_EQ(found.samples, 32);
  EXPECT_EQ(found.groups, expected.groups);
  ASSERT_EQ(found.channels.size(), 4U);
  for (const auto& [kind, groups] : expected.channels) {
    for (const Group& group : analysis.coupling.groups) {
      const auto a = found.of(kind, group);
      const auto b = expected.of(kind, group);
      ASSERT_EQ(a.size(), b.size());
      ASSERT_FALSE(a.empty());
      for (size_t c = 0; c < a.size(); ++c) EXPECT_NEAR(a[c], b[c], 1e-4 * std::abs(b[c]) + 1e-9);
    }
  }
  ASSERT_EQ(found.inputs.size(), 4U);
  for (const auto& [name, moments] : expected.inputs) {
    EXPECT_EQ(found.inputs.at(name).rows, moments.rows) << name;
    EXPECT_TRUE(found.inputs.at(name).second.isApprox(moments.second, 1e-5)) << name;
  }
}

/// A pruned network, and recovery from random samples.
struct PrunedOnEngine {
  TextModel model;
  SmallNetwork settled;  ///< with the samples' statistics
  Graph dense;           ///< its graph
  Pruning pruning;
  CalibrationData job{.data = "random:48"};

  PrunedOnEngine()
      : model(test::kResidualNet, test::residual_weights()), settled(model.graph(), Plan()) {
    test::estimate_batch_norms(settled, calibration().batches, 16);
    dense = settled.graph();
    pruning = plan_pruning(dense, from_shorthand({.criterion = "l1", .ratio = 0.5}));
  }

  Calibration calibration() const {
    return calibration_of(
        std::make_shared<const SampleSource>(job.data, model.graph(), sample_options(job)), 48);
  }

  Recovered on(Engine& engine, RecoveryMethod method) const {
    RecoverySettings settings;
    settings.steps = {method};
    return recover_on(engine, dense, pruning.plan, settings, job);
  }
  Recovered on_libtorch(RecoveryMethod method) const {
    RecoverySettings settings;
    settings.steps = {method};
    return recover(dense, pruning.plan, calibration(), settings);
  }
};

TEST_P(OnEngine, RecoveryIsThatOfLibtorch) {
  using enum RecoveryMethod;
  const PrunedOnEngine net;
  for (const RecoveryMethod method : {kBias, kBatchNorm, kLeastSquares}) {
    SCOPED_TRACE(name_of(method));
    const Recovered expected = net.on_libtorch(method);
    const Recovered found = net.on(*engine_, method);
    const RecoveryStep& step = found.report.steps.front();
    EXPECT_GT(step.layers, 0);
    EXPECT_EQ(step.layers, expected.report.steps.front().layers);
    EXPECT_NEAR(found.report.before.error, expected.report.before.error, 1e-5);
    EXPECT_NEAR(step.after.error, expected.report.steps.front().after.error, 1e-4);
    EXPECT_EQ(found.report.notes, expected.report.notes);
    const std::vector<LayerRecovery>& fits = expected.report.steps.front().fits;
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
    ASSERT_EQ(found.updates.size(), expected.updates.size());
    for (size_t i = 0; i < found.updates.size(); ++i) {
      const auto floats = [](const TensorUpdate& update) {
        return at::from_blob(const_cast<std::byte*>(update.values.data()),
                             {std::ssize(update.values) / 4}, at::kFloat);
      };
      EXPECT_EQ(found.updates[i].tensor, expected.updates[i].tensor);
      EXPECT_LT(far_apart(floats(found.updates[i]), floats(expected.updates[i])), 1e-3)
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
  const Recovered expected = net.on_libtorch(RecoveryMethod::kBias);
  const Recovered found = net.on(*engine_, RecoveryMethod::kBias);
  EXPECT_EQ(found.report.test_samples, 80);
  EXPECT_EQ(found.report.test_samples, expected.report.test_samples);
  ASSERT_TRUE(expected.report.dense_accuracy);
  EXPECT_EQ(found.report.dense_accuracy, expected.report.dense_accuracy);
  EXPECT_NEAR(found.report.before.error, expected.report.before.error, 1e-5);
  const RecoveryState& after = found.report.steps.front().after;
  EXPECT_NEAR(after.error, expected.report.steps.front().after.error, 1e-4);
  EXPECT_EQ(after.accuracy, expected.report.steps.front().after.accuracy);
  EXPECT_FALSE(after.test_error);
}

TEST(CalibrationBatches, AreWholeWhereTheirSizeIsFixed) {
  std::string fixed = test::kResidualNet;
  fixed.replace(fixed.find("float[N,3"), 7, "float[4");
  for (const std::string& text : {fixed, test::kResidualNet}) {
    const TextModel model(text, test::residual_weights());
    for (const char* spec : {"random:10", "shapes:10,10"}) {
      SCOPED_TRACE(spec);
      const auto data = std::make_shared<const SampleSource>(spec, model.graph());
      const BatchSource feed = calibration_of(data, 10).batches(4);
      std::vector<int64_t> counts;
      while (const std::optional<SampleBatch> batch = feed()) counts.push_back(batch->count);
      const std::vector<int64_t> whole = {4, 4};
      const std::vector<int64_t> all = {4, 4, 2};
      EXPECT_EQ(counts, text == fixed ? whole : all);
    }
  }
}

TEST_P(OnEngine, TransposedConvolutionsAreFitted) {
  TextModel model(R"(net (float[N,3,8,8] x) => (float[N,4,9,9] y)
                     { a = Conv(x, W1, B1)
                       b = Relu(a)
                       y = ConvTranspose(b, W2, B2) })",
                  {{"W1", "8x3x1x1"}, {"B1", "8"}, {"W2", "8x4x2x2"}, {"B2", "4"}});
  const Pruning pruning =
      plan_pruning(model.graph(), from_shorthand({.criterion = "l1", .ratio = 0.5}));
  RecoverySettings settings;
  settings.steps = {RecoveryMethod::kLeastSquares};
  const CalibrationData job{.data = "random:64"};
  const RecoveryReport report =
      recover_on(*engine_, model.graph(), pruning.plan, settings, job).report;
  EXPECT_TRUE(report.notes.empty());
  EXPECT_EQ(report.steps.front().layers, 1) << "the first one reads what it did";
  EXPECT_LT(report.steps.front().after.error, 0.8 * report.before.error);
}

/// Three layers, the last two in a branch that is taken where an input is positive. Another If is
/// in that branch, whose condition asks for the size of a sample.
constexpr const char* kBranches = R"(net (float[N,3,8,8] x, float p) => (float[N,4,8,8] y)
  <float none = {0.0}, int64 third = {3}, int64 first = {1}> {
    a = Conv(x, W1, B1)
    b = Relu(a)
    c = Greater(p, none)
    y = If (c) <
      then_branch = t () => (float[N,4,8,8] u) {
        s = Shape(x)
        d = Gather(s, first)
        e = Equal(d, third)
        u = If (e) <
          then_branch = tt () => (float[N,4,8,8] v) { f = Conv(b, W2, B2) g = Relu(f)
                                                      v = Conv(g, W3, B3) },
          else_branch = te () => (float[N,4,8,8] v2) { v2 = Conv(b, V2, C2) }>
      },
      else_branch = o () => (float[N,4,8,8] w) { h = Conv(b, U2, C3) i = Relu(h)
                                                 w = Conv(i, U3, C2) }>
  })";
constexpr const char* kStraight = R"(net (float[N,3,8,8] x) => (float[N,4,8,8] y)
  { a = Conv(x, W1, B1) b = Relu(a) f = Conv(b, W2, B2) g = Relu(f) y = Conv(g, W3, B3) })";

struct Branched {
  TextModel model;
  CalibrationData job{.data = "random:64"};

  explicit Branched(const char* text)
      : model(text, {{"W1", "8x3x1x1"},
                     {"B1", "8"},
                     {"W2", "6x8x1x1"},
                     {"B2", "6"},
                     {"W3", "4x6x1x1"},
                     {"B3", "4"},
                     {"V2", "4x8x1x1"},
                     {"C2", "4"},
                     {"U2", "6x8x1x1"},
                     {"C3", "6"},
                     {"U3", "4x6x1x1"}}) {
    if (model.graph().inputs.size() > 1) job.inputs = {parse_input_spec("p=1")};
  }

  Statistics measured(Engine& engine) {
    const Analysis analysis = analyse(model.graph());
    const Needs needs{.channels = {Measure::kActivationNorm}, .inputs = {"W2", "W3", "U3"}};
    return measure_on(engine, model.graph(), analysis.facts, analysis.coupling, needs,
                      runs_of(job, model.graph()));
  }
  Statistics gradients() {
    const Analysis analysis = analyse(model.graph());
    const Needs needs{.channels = {Measure::kTaylor, Measure::kFisher}};
    const auto data =
        std::make_shared<const SampleSource>(job.data, model.graph(), sample_options(job));
    return measure(model.graph(), analysis.facts, analysis.coupling, needs, batches_of(data, 64));
  }
  Recovered recovered(Engine& engine) {
    const Plan plan =
        plan_pruning(model.graph(), from_shorthand({.criterion = "l1", .ratio = 0.5})).plan;
    RecoverySettings settings;
    settings.steps = {RecoveryMethod::kLeastSquares};
    return recover_on(engine, model.graph(), plan, settings, job);
  }
};

/// Returns the numbers of the groups that any data reached, in ascending order.
std::vector<std::vector<double>> reached(const Statistics& statistics, Measure measure) {
  std::vector<std::vector<double>> found;
  for (const std::vector<double>& channels : statistics.channels.at(measure)) {
    if (!channels.empty()) found.push_back(channels);
  }
  std::ranges::sort(found);
  return found;
}

void expect_near(const Statistics& found, const Statistics& expected, Measure measure) {
  const auto a = reached(found, measure);
  const auto b = reached(expected, measure);
  ASSERT_EQ(a.size(), b.size());
  ASSERT_EQ(a.size(), 2U) << "what W1 and W2 produce";
  for (size_t g = 0; g < a.size(); ++g) {
    ASSERT_EQ(a[g].size(), b[g].size());
    for (size_t c = 0; c < a[g].size(); ++c) EXPECT_NEAR(a[g][c], b[g][c], 1e-4 * b[g][c]);
  }
}

TEST_P(OnEngine, BranchesThatAllDataTakeAreMeasured) {
  Branched branched(kBranches);
  const Statistics found = branched.measured(*engine_);
  const Statistics expected = Branched(kStraight).measured(*engine_);
  expect_near(found, expected, Measure::kActivationNorm);
  ASSERT_TRUE(found.inputs.contains("W2") && found.inputs.contains("W3"));
  EXPECT_FALSE(found.inputs.contains("U3"));
  for (const char* name : {"W2", "W3"}) {
    EXPECT_TRUE(found.inputs.at(name).second.isApprox(expected.inputs.at(name).second, 1e-5));
  }
}

TEST(Branches, ThatDataDoNotTakeHaveNoGradients) {
  const Statistics found = Branched(kBranches).gradients();
  const Statistics expected = Branched(kStraight).gradients();
  for (const Measure measure : {Measure::kTaylor, Measure::kFisher}) {
    expect_near(found, expected, measure);
  }
}

TEST_P(OnEngine, LayersOfBranchesThatAllDataTakeAreFitted) {
  const Recovered found = Branched(kBranches).recovered(*engine_);
  const Recovered expected = Branched(kStraight).recovered(*engine_);
  EXPECT_EQ(expected.report.steps.front().layers, 2);
  EXPECT_EQ(found.report.steps.front().layers, 2);
  EXPECT_NEAR(found.report.before.error, expected.report.before.error, 1e-5);
  EXPECT_NEAR(found.report.steps.front().after.error, expected.report.steps.front().after.error,
              1e-5);
  ASSERT_EQ(found.report.notes.size(), 1U);
  EXPECT_NE(found.report.notes.front().find("3 layers unchanged (in a branch or loop)"),
            std::string::npos)
      << found.report.notes.front();
}

/// Of 64 samples, 16 at a time, those with a mean above 0 take the first branch.
TEST(Branches, ThatSomeDataTakeAreMeasuredOnThese) {
  TextModel model(R"(net (float[N,3,8,8] x) => (float[N,4,8,8] y) <float none = {0.0}> {
    m = ReduceMean <keepdims = 0> (x)
    c = Greater(m, none)
    y = If (c) <
      then_branch = t () => (float[N,4,8,8] u) { f = Conv(x, W1, B1) u = Conv(f, W2, B2) },
      else_branch = o () => (float[N,4,8,8] w) { g = Conv(x, V1, B1) w = Conv(g, V2, B2) }>
  })",
                  {{"W1", "8x3x1x1"},
                   {"B1", "8"},
                   {"W2", "4x8x1x1"},
                   {"B2", "4"},
                   {"V1", "8x3x1x1"},
                   {"V2", "4x8x1x1"}});
  const Analysis analysis = analyse(model.graph());
  at::manual_seed(3);
  const at::Tensor x = at::randn({64, 3, 8, 8});
  const Batches batches = [&x](int64_t /*size*/) -> BatchSource {
    return [&x, first = int64_t{0}]() mutable -> std::optional<SampleBatch> {
      if (first == 64) return {};
      SampleBatch batch;
      batch.count = 16;
      batch.inputs = {x.narrow(0, std::exchange(first, first + 16), 16)};
      return batch;
    };
  };
  int64_t above = 0;
  for (int64_t first = 0; first < 64; first += 16) {
    if (x.narrow(0, first, 16).mean().item<float>() > 0) above += 16;
  }
  ASSERT_TRUE(above > 0 && above < 64);
  const Statistics found = measure(model.graph(), analysis.facts, analysis.coupling,
                                   {.inputs = {"W1", "W2", "V2"}}, batches);
  EXPECT_EQ(found.inputs.at("W2").rows, above * 64);
  EXPECT_EQ(found.inputs.at("V2").rows, (64 - above) * 64);
}

/// Half of the runs take the other branch.
TEST_P(OnEngine, BranchesThatOnlySomeDataTakeStayBranches) {
  Branched branched(kBranches);
  const Graph& graph = branched.model.graph();
  const auto taken = [&](bool alternates) {
    return branches_taken(*engine_, graph, [&](const auto& see) {
      float sign = 1;
      runs_of(branched.job, graph)(16, [&](const EngineValues& inputs, int64_t /*samples*/) {
        if (alternates) sign = -sign;
        see({inputs[0], values_of({at::tensor(sign)}).front()});
      });
    });
  };
  EXPECT_TRUE(taken(true).empty());
  EXPECT_EQ(taken(false),
            (std::vector<std::string>{"y::then_branch", "y::then_branch::u::then_branch"}));
}

/// The batch size is fixed, the condition depends on the samples, and the other branch is a weight.
TEST_P(OnEngine, BranchesOfNetworksWithAFixedBatchAreTaken) {
  TextModel model(R"(net (float[16,3,32,32] x) => (float[16,4,32,32] y) <float far = {-1000.0}> {
    a = Conv(x, W1, B1)
    b = Relu(a)
    m = ReduceMax <keepdims = 0> (x)
    c = Greater(m, far)
    y = If (c) <
      then_branch = t () => (float[16,4,32,32] u) { f = Conv(b, W2, B2) g = Relu(f)
                                                  u = Conv(g, W3, B3) },
      else_branch = o () => (float[16,4,32,32] w) { w = Identity(Z) }>
  })",
                  {{"W1", "8x3x1x1"},
                   {"B1", "8"},
                   {"W2", "6x8x1x1"},
                   {"B2", "6"},
                   {"W3", "4x6x1x1"},
                   {"B3", "4"},
                   {"Z", "16x4x32x32"}});
  const Graph& graph = model.graph();
  const Plan plan =
      plan_pruning(model.graph(), from_shorthand({.criterion = "l1", .ratio = 0.5})).plan;
  RecoverySettings settings;
  settings.steps = {RecoveryMethod::kLeastSquares};
  const CalibrationData job{.data = "random:80"};
  EXPECT_EQ(recover_on(*engine_, graph, plan, settings, job).report.steps.front().layers, 2);
  const Dataset data = read_dataset("shapes:80,16");
  const Analysis analysis = analyse(model.graph());
  const Statistics found = measure(graph, analysis.facts, analysis.coupling,
                                   {.channels = {Measure::kActivationNorm}}, batches_of(data, 80));
  EXPECT_EQ(found.samples, 80);
  EXPECT_EQ(reached(found, Measure::kActivationNorm).size(), 2U);
}

}  // namespace
}  // namespace parsimony::training
