// A loss without labels, training by it, and the walk of recovery through a network.
#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Parallel.h>
#include <ATen/core/grad_mode.h>
#include <gtest/gtest.h>
#include <torch/nn/modules/linear.h>

#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "parsimony/api/prune.h"
#include "parsimony/base/errors.h"
#include "parsimony/base/ranges.h"
#include "parsimony/graph/weights.h"
#include "parsimony/programs/exported/model.h"
#include "parsimony/speedup/small_network.h"
#include "parsimony/torch_io/executor/graph_module.h"
#include "parsimony/torch_io/machine.h"
#include "parsimony/torch_io/mirror.h"
#include "parsimony/torch_io/script/read.h"
#include "parsimony/torch_io/script/script_file.h"
#include "parsimony/torch_io/tensor.h"
#include "parsimony/training/loop/output_loss.h"
#include "parsimony/training/recovery/ends.h"
#include "parsimony/training/recovery/match_outputs.h"
#include "parsimony/training/recovery/recover.h"
#include "tests/support/model.h"
#include "tests/support/same_bytes.h"
#include "tests/training/refitting.h"
#include "tests/training/small_nets.h"

namespace parsimony::training {
namespace {

using test::output_error;
using test::TextModel;

/// A detector in little: two inputs; boxes, scores and classes in one output, and the best class.
const char* const kDetector = R"(
    net (float[N,3,8,8] x, float[N,6] z) => (float[N,16,7] y, int64[N,16] best)
    <int64[3] flat = {0, -1, 16}, int64[2] axes = {2, 3}, int64[2] pixels = {0, -1}>
    {
      a = Conv<pads=[1,1,1,1], strides=[2,2]>(x, W1, B1)
      b = Relu(a)
      z1 = Gemm<transB=1>(z, W5, B5)
      z2 = Unsqueeze(z1, axes)
      c = Add(b, z2)
      boxes = Conv(c, W2, B2)
      raw = Conv(c, W3, B3)
      score = Sigmoid(raw)
      logits = Conv(c, W4, B4)
      class = Softmax<axis=1>(logits)
      all = Concat<axis=1>(boxes, score, class)
      rows = Reshape(all, flat)
      y = Transpose<perm=[0,2,1]>(rows)
      chosen = ArgMax<axis=1, keepdims=0>(logits)
      best = Reshape(chosen, pixels)
    })";

struct Detector {
  /// @param score  the operator that gives it
  explicit Detector(const std::string& score = "Sigmoid") : model(text(score), kWeights) {}

  static std::string text(const std::string& score) {
    std::string text = kDetector;
    return text.replace(text.find("Sigmoid"), std::string("Sigmoid").size(), score);
  }

  static inline const std::vector<test::SeededWeight> kWeights = {
      {"W1", "8x3x3x3"}, {"B1", "8"},       {"W2", "4x8x1x1"}, {"B2", "4"},   {"W3", "1x8x1x1"},
      {"B3", "1"},       {"W4", "2x8x1x1"}, {"B4", "2"},       {"W5", "8x6"}, {"B5", "8"}};
  TextModel model;
  Pruning pruning = plan_pruning(model.graph(), from_shorthand({.criterion = "l1", .ratio = 0.25}));

  const Graph& graph() const { return model.graph(); }
};

std::vector<std::string> names_of(const Graph& graph, const std::vector<ValueId>& values) {
  std::vector<std::string> names;
  for (const ValueId v : values) names.push_back(graph.value(v).name);
  return names;
}

TEST(Matching, PrunedElementsTakeNoSteps) {
  at::Tensor w = at::tensor({0., 2., 0., 4.}).requires_grad_(true);
  at::Tensor free = at::tensor({0., 2.}).requires_grad_(true);
  const std::function<void()> hook = keeping_zeros({{"w", w}, {"free", free}}, {"w"});
  w.mutable_grad() = at::ones({4}, w.options());
  free.mutable_grad() = at::ones({2}, free.options());
  hook();
  EXPECT_TRUE(w.grad().equal(at::tensor({0., 1., 0., 1.})));
  EXPECT_TRUE(free.grad().equal(at::ones({2}, free.options())));
}

TEST(OutputLoss, TakesOutputsApartIntoWhatCanBeTrained) {
  const Detector net;
  const SmallNetwork small(net.graph(), net.pruning.plan);
  EXPECT_EQ(names_of(net.graph(), OutputLoss(net.graph(), small, {}).values()),
            (std::vector<std::string>{"boxes", "score", "class", "logits"}));
  EXPECT_EQ(names_of(net.graph(), OutputLoss(net.graph(), small, {{"best", 0}, {"a", 2}}).values()),
            (std::vector<std::string>{"a", "boxes", "score", "class"}));
  EXPECT_THROW(OutputLoss(net.graph(), small, {{"nothing", 1}}), ConfigError);
}

TEST(OutputLoss, DividesByTheSpreadOfWhatItCompares) {
  const Detector net;
  const SmallNetwork small(net.graph(), net.pruning.plan);
  OutputLoss loss(net.graph(), small, {{"best", 0}});
  const at::Tensor boxes = at::arange(8, at::kFloat).reshape({1, 2, 2, 2});
  const at::Tensor score = at::full({1, 1, 2, 2}, 0.25F);
  const at::Tensor classes = at::full({1, 2, 2, 2}, 0.5F);
  loss.learn({boxes, score, classes});
  EXPECT_NEAR(loss({boxes, score, classes}, {boxes, score, classes}).item<double>(), 0, 1e-6);
  const double variance = at::var(boxes, false).item<double>();
  EXPECT_NEAR(loss({boxes, score, classes}, {boxes + 0.5, score, classes}).item<double>(),
              0.25 / variance, 1e-6);
  EXPECT_NEAR(loss({boxes, score, classes}, {boxes, score * 2, classes}).item<double>(),
              0.25 * std::log(0.5) + 0.75 * std::log(1.5), 1e-5)
      << "scores that are all the same have no spread";
  const at::Tensor scores = at::tensor({0.1F, 0.2F, 0.6F, 0.9F}).reshape({1, 1, 2, 2});
  OutputLoss fresh(net.graph(), small, {{"best", 0}});
  fresh.learn({boxes, scores, classes});
  const at::Tensor mean = at::full_like(scores, scores.mean().item<float>());
  EXPECT_NEAR(fresh({boxes, scores, classes}, {boxes, mean, classes}).item<double>(), 1, 1e-5)
      << "as far as a constant";
  const at::Tensor other = at::cat({classes.narrow(1, 0, 1) / 2, classes.narrow(1, 0, 1) * 1.5}, 1);
  EXPECT_NEAR(loss({boxes, score, classes}, {boxes, score, other}).item<double>(),
              0.5 * std::log(2) + 0.5 * std::log(1 / 1.5), 1e-5);
}

TEST(OutputLoss, PlacesCountAsMuchAsTheNetworkIsConfident) {
  const Detector net;
  const SmallNetwork small(net.graph(), net.pruning.plan);
  OutputLoss loss(net.graph(), small, {{"best", 0}});
  const at::Tensor boxes = at::arange(8, at::kFloat).reshape({1, 2, 2, 2});
  const at::Tensor score = at::tensor({0.8F, 0.4F, 0.0F, 0.0F}).reshape({1, 1, 2, 2});
  const at::Tensor classes = at::full({1, 2, 2, 2}, 0.5F);
  loss.learn({boxes, score, classes});
  const auto moved_at = [&](int64_t place) {
    at::Tensor moved = boxes.clone();
    moved.flatten(2).narrow(2, place, 1).add_(0.1);
    return loss({boxes, score, classes}, {moved, score, classes}).item<double>();
  };
  EXPECT_GT(moved_at(0), 1e-4);
  EXPECT_NEAR(moved_at(0), 2 * moved_at(1), 1e-6);
  EXPECT_NEAR(moved_at(2), 0, 1e-9);
  const double mean = at::sum(boxes * score).item<double>() / at::sum(score).item<double>() / 2;
  const double spread = at::sum((boxes - mean).square() * score).item<double>();
  EXPECT_NEAR(moved_at(0), 2 * 0.01 * 0.8 / spread, 1e-6);
}

/// A network that is compared with itself is at the loss's minimum, where its gradient is zero.
TEST(OutputLoss, DrawsGradientsWhoseSquareIsTheLoss) {
  const Detector net;
  const SmallNetwork small(net.graph(), net.pruning.plan);
  OutputLoss loss(net.graph(), small, {{"best", 0}});
  OutputLoss own(net.graph());
  at::manual_seed(1);
  const auto pixels = [](int64_t channels) { return at::randn({3, channels, 4, 4}); };
  std::vector<at::Tensor> values = {pixels(4), pixels(1).sigmoid(), pixels(2).softmax(1),
                                    pixels(2)};
  own.learn(values);
  values.back() = at::zeros({3, 2, 0, 4});  // what is chosen by is left out
  loss.learn({values[0], values[1], values[2]});
  const at::Tensor moved = 0.01 * values[2].prod(1, /*keepdim=*/true) * pixels(1);
  const std::vector<at::Tensor> changes = {0.1 * pixels(4),
                                           0.1 * values[1] * (1 - values[1]) * pixels(1),
                                           at::cat({moved, -moved}, 1)};  // distributions remain
  for (const size_t changed : {0U, 1U, 2U}) {
    std::vector<at::Tensor> near = {values[0], values[1], values[2]};
    const at::Tensor& change = changes[changed];
    near[changed] = near[changed] + change;
    const double requested = loss({values[0], values[1], values[2]}, near).item<double>();
    const at::Generator generator = at::detail::createCPUGenerator(2);
    double sum = 0;
    constexpr int kDraws = 2000;
    for (int i = 0; i < kDraws; ++i) {
      std::vector<at::Tensor> leaves = values;
      leaves[changed] = values[changed].clone().requires_grad_(true);
      const at::AutoGradMode gradients(true);
      own.drawn(leaves, generator).backward();
      sum += (leaves[changed].grad() * change).sum().square().item<double>();
    }
    EXPECT_NEAR(sum / kDraws / requested, 1, 0.1) << changed;
  }
}

Batches noise(int64_t samples) {
  return [samples](int64_t size) -> BatchSource {
    return [samples, size, first = int64_t{0}]() mutable -> std::optional<SampleBatch> {
      if (first >= samples) return {};
      at::manual_seed(static_cast<uint64_t>(first));
      SampleBatch batch;
      batch.count = std::min(size, samples - first);
      batch.inputs = {at::randn({batch.count, 3, 8, 8}), at::randn({batch.count, 6})};
      first += batch.count;
      return batch;
    };
  };
}

/// The output error counts all places alike, as the loss does where there are no likelihoods.
TEST(MatchingOutputs, BringsADetectorWithTwoInputsBack) {
  const Detector net("Tanh");
  Calibration data;
  data.batches = noise(256);
  data.samples = 256;
  data.values = 3 * 8 * 8 + 6;
  data.held_out = [all = noise(320)](int64_t size) -> BatchSource {
    BatchSource feed = all(size);
    for (int64_t skipped = 0; skipped < 256; skipped += size) feed();
    return feed;
  };
  data.held_out_samples = 64;
  RecoverySettings settings;
  settings.steps = {RecoveryMethod::kOutputs};
  settings.outputs = {.epochs = 60, .lr = 1e-2};
  std::vector<double> losses;  // the loss, before and after every epoch
  const auto say = [&](const std::string& line) {
    constexpr std::string_view kBefore = "validation batches ";
    const size_t at = line.find(kBefore);
    if (at != line.npos) losses.push_back(std::stod(line.substr(at + kBefore.size())));
  };
  const Recovered result = recover(net.graph(), net.pruning.plan, data, settings, say);
  const RecoveryStep& step = result.report.steps.front();
  ASSERT_EQ(losses.size(), 61U);
  EXPECT_LT(std::ranges::min(losses), 0.4 * losses.front());
  EXPECT_EQ(step.layers, 10);
  EXPECT_EQ(result.report.test_samples, 64);
  ASSERT_TRUE(result.report.before.test_error && step.after.test_error);
  EXPECT_LT(*step.after.test_error, 0.65 * *result.report.before.test_error);
}

/// Eight batches of random numbers.
Batches random_batches(const at::IntArrayRef& dims) {
  return [dims = dims.vec()](int64_t) -> BatchSource {
    return [dims, left = 8]() mutable -> std::optional<SampleBatch> {
      if (left-- == 0) return {};
      SampleBatch batch;
      batch.inputs = {at::randn(dims, at::detail::createCPUGenerator(left))};
      batch.count = dims[0];
      return batch;
    };
  };
}

/// The weights of the halved network that training to the outputs, whole or in blocks, has changed.
std::set<std::string> trained_in(Graph& graph) {
  const Pruning pruning = plan_pruning(graph, from_shorthand({.criterion = "l1", .ratio = 0.5}));
  EXPECT_FALSE(pruning.plan.groups.empty());
  SmallNetwork small(graph, pruning.plan);
  const MatchData data{.batches = random_batches({2, 6, 8}), .batch = 2};
  match_blocks(graph, small, {}, data, {.epochs = 4, .lr = 1e-2});
  match_outputs(graph, small, {}, data, {.epochs = 2, .lr = 1e-2});
  std::set<std::string> names;
  for (const TensorUpdate& update : small.updates()) names.insert(update.tensor);
  return names;
}

using Names = std::set<std::string>;

const std::vector<InputSpec> kShape = {{{2, 6, 8}, {}}};

TEST(Trained, OfInitializersWhatLayersReadByTheirRows) {
  // Frequencies, a table of their products, positions, a window, a mask and an epsilon stay.
  TextModel model(
      R"(<ir_version: 8, opset_import: ["" : 17]>
         net (float[2,6,8] x) => (float[2,6,8] y) <float one = {1.0}, int64[1] last = {-1}>
         { angle = Mul(x, frequencies)
           turned = Cos(angle)
           place = ReduceMean<axes=[2]>(x)
           table = MatMul(place, more_frequencies)
           p = Add(turned, positions)
           q = Add(p, table)
           t = Transpose<perm=[1,0]>(W1)
           h = MatMul(q, t)
           b = Add(h, B1)
           c = PRelu(b, slope)
           n = LayerNormalization<axis=-1>(c, gain, shift)
           g = Mul(n, own_gain)
           m = MatMul(g, W2)
           w = Mul(m, window)
           e = Div(w, one)
           y = Add(e, mask) })",
      {{"frequencies", "8"},
       {"more_frequencies", "1x8"},
       {"positions", "6x8"},
       {"W1", "16x8"},
       {"B1", "16"},
       {"slope", "16"},
       {"gain", "16"},
       {"shift", "16"},
       {"own_gain", "16"},
       {"W2", "16x8"},
       {"window", "6x8"},
       {"mask", "6x1"}});
  EXPECT_EQ(trained_in(model.graph()),
            (Names{"W1", "B1", "slope", "gain", "shift", "own_gain", "W2"}));
}

TEST(Trained, ConstantsAreWalkedOnceHoweverOftenTheyAreRead) {
  std::string steps = "w0 = Add(W, W)\n";
  for (int i = 1; i < 200; ++i) {
    const std::string before = "w" + std::to_string(i - 1);
    steps += "w" + std::to_string(i) + " = Add(" + before + ", " + before + ")\n";
  }
  const TextModel model(
      "net (float[N,8] x) => (float[N,4] y)\n{ " + steps + "y = MatMul(x, w199) }", {{"W", "8x4"}});
  EXPECT_TRUE(trained_weights(model.graph())[WeightId(0)]);
}

TEST(Trained, TablesThatInputsLookUp) {
  const TextModel model(
      R"(net (int64[N,6] ids) => (float[N,6,8] y) <int64[6] places = {0, 1, 2, 3, 4, 5}>
         { a = Gather(words, ids)
           b = Gather(positions, places)
           c = Add(a, b)
           y = MatMul(c, W) })",
      {{"words", "30x8"}, {"positions", "6x8"}, {"W", "8x8"}});
  const auto trained = trained_weights(model.graph());
  Names names;
  for (const WeightId w : trained.ids()) {
    if (trained[w]) names.insert(model.graph().weights[w].name);
  }
  EXPECT_EQ(names, (Names{"words", "W"}));
}

TEST(Trained, MatricesAmongWhichDataChoose) {
  const TextModel model(
      R"(net (float[1,8] x) => (float[1,4] y)
         { a = MatMul(x, router)
           chosen = ArgMax<axis=-1, keepdims=0>(a)
           matrix = Gather(experts, chosen)
           b = MatMul(x, matrix)
           y = Squeeze(b) })",
      {{"router", "8x3"}, {"experts", "3x8x4"}});
  const auto trained = trained_weights(model.graph());
  EXPECT_TRUE(trained[WeightId(0)]);
  EXPECT_TRUE(trained[WeightId(1)]);
}

/// Frequencies on the input, positions, and a window behind the last layer: buffers, though to
/// their places a gain and a bias belong as well. The scale is a parameter.
const char* const kRotary = R"(
def forward(self, x):
    y = torch.cos(x * self.inv_freq) + self.positions
    h = torch.relu(torch.matmul(y, self.w1) + self.b1)
    return torch.matmul(h, self.w2) * self.window * self.scale
)";

torch::jit::Module rotary() {
  torch::jit::Module module("rotary");
  const at::Generator generator = at::detail::createCPUGenerator(3);
  const auto add = [&](const char* name, at::IntArrayRef dims, bool is_buffer) {
    module.register_parameter(name, at::randn(dims, generator), is_buffer);
  };
  add("inv_freq", {8}, true);
  add("positions", {6, 8}, true);
  add("window", {8}, true);
  add("w1", {8, 16}, false);
  add("b1", {16}, false);
  add("w2", {16, 8}, false);
  add("scale", {}, false);
  module.define(kRotary);
  return module;
}

TEST(Trained, OfTorchScriptItsParameters) {
  torch_io::ScriptGraph script = torch_io::read_script(rotary(), kShape);
  EXPECT_EQ(trained_in(script.graph), (Names{"w1", "b1", "w2", "scale"}));
}

TEST(Trained, OfALiveModuleItsParameters) {
  torch::nn::Module module;
  const at::Tensor frequencies = module.register_buffer("frequencies", at::rand({8}) + 0.5);
  const at::Tensor window = module.register_buffer("window", at::rand({8}) + 0.5);
  torch::nn::Linear inner = module.register_module("inner", torch::nn::Linear(8, 16));
  torch::nn::Linear outer = module.register_module("outer", torch::nn::Linear(16, 8));
  const torch::jit::Module traced =
      torch_io::traced(module,
                       [&](const std::vector<at::Tensor>& x) {
                         return outer(inner(at::cos(x.at(0) * frequencies)).relu()) * window;
                       },
                       {at::randn({2, 6, 8})});
  torch_io::ScriptGraph script = torch_io::read_script(traced, kShape);
  EXPECT_EQ(trained_in(script.graph),
            (Names{"inner.weight", "inner.bias", "outer.weight", "outer.bias"}));
}

TEST(Trained, OfAProgramOfTorchExportItsParameters) {
  programs::ExportedModel file("tests/exported/tiny_rotary.2.15.pt2", {});
  EXPECT_EQ(trained_in(file.graph()),
            (Names{"inner.weight", "inner.bias", "out.weight", "out.bias", "scale"}));
}

/// Four layers in a row, the second of which also reaches the last.
const char* const kChain = R"(
    net (float[N,3,8,8] x, float[N,6] z) => (float[N,4,8,8] y)
    {
      a = Conv<pads=[1,1,1,1]>(x, W1, B1)
      b = Relu(a)
      c = Conv<pads=[1,1,1,1]>(b, W2, B2)
      d = Relu(c)
      e = Conv<pads=[1,1,1,1]>(d, W3, B3)
      f = Relu(e)
      g = Concat<axis=1>(d, f)
      y = Conv(g, W4, B4)
    })";

const std::vector<test::SeededWeight> kChainWeights = {
    {"W1", "8x3x3x3"}, {"B1", "8"}, {"W2", "8x8x3x3"},  {"B2", "8"},
    {"W3", "8x8x3x3"}, {"B3", "8"}, {"W4", "4x16x1x1"}, {"B4", "4"}};

TEST(Blocks, EndWhereLaterOnesRead) {
  const TextModel model(kChain, kChainWeights);
  const std::vector<TrainedBlock> one_each = blocks_of(model.graph(), 1);
  ASSERT_EQ(one_each.size(), 4U);
  EXPECT_EQ(names_of(model.graph(), one_each[1].values), (std::vector<std::string>{"c"}));
  EXPECT_EQ(one_each[1].weights, (std::set<std::string>{"W2", "B2"}));
  const std::vector<TrainedBlock> pairs = blocks_of(model.graph(), 2);
  ASSERT_EQ(pairs.size(), 2U);
  EXPECT_EQ(names_of(model.graph(), pairs[0].values), (std::vector<std::string>{"c"}))
      << "nothing behind the block reads a";
  EXPECT_EQ(pairs[0].weights, (std::set<std::string>{"B1", "B2", "W1", "W2"}));
  EXPECT_EQ(names_of(model.graph(), pairs[1].values), (std::vector<std::string>{"y"}));
  const std::vector<TrainedBlock> threes = blocks_of(model.graph(), 3);
  EXPECT_EQ(names_of(model.graph(), threes[0].values), (std::vector<std::string>{"c", "e"}));
}

/// The weights that matching leaves, and its notes.
std::pair<std::string, std::vector<std::string>> matched_within(double minutes, int cores) {
  const int threads = at::get_num_threads();
  torch_io::use_cores(cores);
  TextModel model(kChain, kChainWeights);
  const Pruning pruning =
      plan_pruning(model.graph(), from_shorthand({.criterion = "l1", .ratio = 0.25}));
  SmallNetwork small(model.graph(), pruning.plan);
  const Matched matched = match_outputs(model.graph(), small, {}, {noise(96), 16},
                                        {.epochs = 3, .lr = 1e-2, .minutes = minutes});
  std::string bytes;
  for (const Weight& weight : small.graph().weights) {
    const at::Tensor values = torch_io::to_tensor(weight).contiguous();
    bytes.append(static_cast<const char*>(values.data_ptr()), values.nbytes());
  }
  at::set_num_threads(threads);
  return {bytes, matched.notes};
}

TEST(MatchingOutputs, NeitherCoresNorTimeThatSufficesChangeTheWeights) {
  const auto [bytes, notes] = matched_within(0, 1);
  EXPECT_TRUE(notes.empty());
  for (const int cores : {2, 4, 5}) {
    const auto [same, none] = matched_within(60, cores);
    EXPECT_TRUE(test::same_bytes(same, bytes)) << cores << " cores";
    EXPECT_TRUE(none.empty());
  }
}

TEST(MatchingOutputs, SaysThatTimeDecided) {
  const auto [bytes, notes] = matched_within(1e-9, 2);
  ASSERT_EQ(notes.size(), 1U);
  EXPECT_EQ(notes.front(), "the time limit ended training; another run may give different weights");
}

TEST(MatchingOutputs, InBlocksAndThenTheWhole) {
  TextModel model(kChain, kChainWeights);
  const Pruning pruning =
      plan_pruning(model.graph(), from_shorthand({.criterion = "l1", .ratio = 0.25}));
  SmallNetwork small(model.graph(), pruning.plan);
  const Batches data = noise(128);
  const double before = output_error(model.graph(), small, data, 8);
  std::vector<std::string> lines;
  const int changed =
      match_blocks(model.graph(), small, {},
                   {data, 8, nullptr, [&](const std::string& line) { lines.push_back(line); }},
                   {.epochs = 40, .lr = 1e-2});
  EXPECT_EQ(changed, 8) << "every weight belongs to one block";
  EXPECT_TRUE(lines.front().starts_with("block 1 of 1: loss")) << lines.front();
  EXPECT_LT(output_error(model.graph(), small, data, 8), 0.9 * before);
  Calibration calibration;
  calibration.batches = data;
  calibration.samples = 128;
  calibration.values = 3 * 8 * 8 + 6;
  RecoverySettings settings;
  settings.steps = {RecoveryMethod::kBlocks};
  settings.outputs = {.epochs = 40, .lr = 1e-2};
  const RecoveryReport report = recover(model.graph(), pruning.plan, calibration, settings).report;
  EXPECT_LT(report.steps.front().after.error, 0.8 * report.before.error);
}

/// A cell whose state may lose channels.
const char* const kCell = R"(
    cell (float[1,3] x, float[1,8] s) => (float[1,2] y, float[1,8] t)
    {
      a = Gemm<transB=1>(x, W1, B1)
      b = Gemm<transB=1>(s, W2, B2)
      c = Add(a, b)
      t = Tanh(c)
      y = Gemm<transB=1>(t, W3, B3)
    })";

PruneRequest with_states() {
  PruneRequest request = from_shorthand({.criterion = "l1", .ratio = 0.25});
  request.interface.states = {"auto"};
  return request;
}

struct Cell {
  TextModel model{
      kCell, {{"W1", "8x3"}, {"B1", "8"}, {"W2", "8x8"}, {"B2", "8"}, {"W3", "2x8"}, {"B3", "2"}}};
  Pruning pruning = plan_pruning(model.graph(), with_states());
  const std::vector<FedBack> states = {{1, model.graph().find("t"), "t"}};

  const Graph& graph() const { return model.graph(); }

  /// A stream, whose states are those of the dense network. @param alike  frames that are the same
  /// one after the other
  Batches stream(int64_t samples, int64_t alike = 1) const {
    return fed_back(graph(), states, [samples, alike](int64_t) -> BatchSource {
      return [samples, alike, next = int64_t{0}]() mutable -> std::optional<SampleBatch> {
        if (next >= samples) return {};
        at::manual_seed(static_cast<uint64_t>(next++ / alike));
        SampleBatch batch;
        batch.count = 1;
        batch.inputs = {at::randn({1, 3}), at::zeros({1, 8})};
        return batch;
      };
    });
  }
};

TEST(States, OfTheSmallNetworkAreItsOwn) {
  const at::NoGradGuard no_grad;
  const Cell cell;
  const SmallNetwork small(cell.graph(), cell.pruning.plan);
  GraphModule module(small.graph(), GraphModuleOptions{.trainable = false});
  const BatchSource feed = small_feed(small, cell.stream(4)(1));
  const BatchSource dense = cell.stream(4)(1);
  at::Tensor state = at::zeros({1, 6});
  for (int i = 0; i < 4; ++i) {
    const std::optional<SampleBatch> batch = feed();
    ASSERT_TRUE(batch.has_value());
    EXPECT_TRUE(at::allclose(batch->inputs[1], state)) << i;
    EXPECT_TRUE(at::equal(batch->inputs[0], dense()->inputs[0]));
    state = module->forward(batch->inputs)[1];
  }
  EXPECT_FALSE(feed().has_value());
}

TEST(States, OfANetworkThatWasCutEarlierBeginWithZeros) {
  const Cell cell;
  const SmallNetwork cut(cell.graph(), cell.pruning.plan);
  const Plan nothing;
  const SmallNetwork small(cut.graph(), nothing);
  const BatchSource same = small_feed(cut, cell.stream(3)(1));
  const BatchSource feed = small_feed(small, cell.stream(3)(1));
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(at::allclose(feed()->inputs[1], same()->inputs[1])) << i;
}

TEST(States, AreNoOutputsToCompare) {
  const Cell cell;
  const SmallNetwork small(cell.graph(), cell.pruning.plan);
  const SmallNetwork whole(cell.graph(), Plan());
  const auto runs_of = [&](const SmallNetwork& network) {
    GraphModule module(network.graph(), GraphModuleOptions{.trainable = false});
    std::vector<at::Tensor> outputs;
    const BatchSource feed = small_feed(network, cell.stream(20)(1));
    while (const std::optional<SampleBatch> batch = feed()) {
      outputs.push_back(module->forward(batch->inputs)[0]);
    }
    return at::stack(outputs);
  };
  const at::NoGradGuard no_grad;
  const at::Tensor dense = runs_of(whole);
  const double expected = ((runs_of(small) - dense).norm() / dense.norm()).item<double>();
  EXPECT_NEAR(output_error(cell.graph(), small, cell.stream(20), 1), expected, 1e-5 * expected);
}

TEST(States, AreFittedToWhatAStreamShowsLater) {
  const Cell cell;
  SmallNetwork small(cell.graph(), cell.pruning.plan);
  const double cut = output_error(cell.graph(), small, cell.stream(400), 1);
  EXPECT_GT(test::refit(cell.graph(), small, {}, cell.stream(60, 5), {.batch = 1}), 0);
  EXPECT_LT(output_error(cell.graph(), small, cell.stream(400), 1), cut)
      << "neighbours of frames that were seen do not tell how well the fit holds";
}

TEST(States, AreTrainedAsTheyWillRun) {
  const Cell cell;
  Calibration data;
  data.batches = cell.stream(200);
  data.samples = 200;
  data.values = 3 + 8;
  RecoverySettings settings;
  settings.steps = {RecoveryMethod::kLeastSquares, RecoveryMethod::kOutputs};
  settings.outputs = {.epochs = 20, .lr = 1e-2};
  const RecoveryReport report = recover(cell.graph(), cell.pruning.plan, data, settings).report;
  EXPECT_LT(report.steps[1].after.error, report.before.error);
  EXPECT_LT(report.steps[1].after.error, report.steps[0].after.error);
}

TEST(Walks, ComputeWhatTheWholeNetworkWould) {
  torch_io::use_cores();  // sums of one thread, everywhere
  const at::NoGradGuard no_grad;
  Detector net;
  const Graph& graph = net.graph();
  const auto value = [&](const char* name) { return graph.find(name); };
  const std::vector<ValueId> requested = {value("c"), value("boxes"), value("y")};
  const SmallNetwork small(graph, Plan());
  const Batches batches = noise(24);
  torch_io::TorchEngine engine;
  const RefitData data = test::data_of(engine, small, batches, 8);
  Walk walk(engine, graph, requested);
  EXPECT_EQ(walk.add(data.feed(false), 2), 2);
  const EngineValues c = walk.compute(value("c"));
  walk.finish(value("c"));
  const ValueSource rest = data.feed(false);
  rest();
  rest();
  EXPECT_EQ(walk.add(rest, 5), 1) << "the data end";
  EXPECT_EQ(walk.batches(), 3);

  WeightId weight = kNone;
  for (const Node& node : graph.nodes) {
    if (contains(node.outputs, value("boxes"))) weight = graph.value(node.inputs[1]).weight;
  }
  const EngineValues boxes = walk.after(weight, value("boxes"));
  walk.finish(value("boxes"));
  const EngineValues y = walk.compute(value("y"));
  Graph whole = graph;
  whole.outputs = requested;
  GraphModule module(whole);
  const BatchSource feed = batches(8);
  for (size_t b = 0; b < 3; ++b) {
    const std::vector<at::Tensor> expected = module->forward(feed()->inputs);
    if (b < c.size()) {
      EXPECT_TRUE(at::equal(torch_io::tensor_of(c[b]), expected[0]));
    }
    EXPECT_TRUE(at::equal(torch_io::tensor_of(boxes[b]), expected[1]));
    EXPECT_TRUE(at::equal(torch_io::tensor_of(y[b]), expected[2]));
  }
  walk.finish(value("y"));
  EXPECT_EQ(walk.bytes(), 0) << "nothing is kept that nothing needs";
}

}  // namespace
}  // namespace parsimony::training
