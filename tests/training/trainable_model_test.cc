// Every kind of TrainableModel: trained, pruned, saved, restored.
#include "parsimony/training/net/trainable_model.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <gtest/gtest.h>
#include <torch/csrc/jit/serialization/import.h>

#include <limits>

#include "parsimony/base/errors.h"
#include "parsimony/base/files.h"
#include "parsimony/training/loop/device.h"
#include "tests/support/same_bytes.h"
#include "tests/training/small_nets.h"

namespace parsimony::training {
namespace {

using test::example;
using test::predictions;
using test::size_of;

const ConfigList kHalf = from_shorthand({.criterion = "l1", .ratio = 0.5});

at::Tensor some_images(int64_t count) {
  const at::Generator generator = at::detail::createCPUGenerator(5);
  return at::randn({count, 3, 32, 32}, generator);
}

at::Tensor some_labels(int64_t count) { return at::arange(count, at::kLong).remainder(10); }

/// Plain gradient descent on one batch. @returns the loss before each step
std::vector<double> train(TrainableModel& net, int steps) {
  std::vector<double> losses;
  net.train(true);
  for (int step = 0; step < steps; ++step) {
    const at::Tensor loss = at::cross_entropy_loss(net.forward(some_images(20)), some_labels(20));
    losses.push_back(loss.item<double>());
    loss.backward();
    const at::NoGradGuard no_grad;
    for (auto& [name, parameter] : net.parameters()) {
      parameter.sub_(parameter.grad(), 0.05);
      parameter.mutable_grad().reset();
    }
  }
  return losses;
}

at::Tensor named(const std::vector<NamedParameter>& list, const std::string& name) {
  for (const auto& [own, tensor] : list) {
    if (own == name) return tensor;
  }
  return {};
}

at::Tensor one_weight(TrainableModel& net) {
  return net.parameters().front().second.detach().view({-1}).narrow(0, 0, 1);
}

template <typename E>
std::string refusal_of(const std::function<void()>& work) {
  try {
    work();
  } catch (const E& error) {
    return error.what();
  }
  return "no such error";
}

class Nets : public testing::TestWithParam<const char*> {
 protected:
  test::TemporaryFolder folder_;
  test::MakeNet make_ = test::small_net(GetParam(), folder_);
  std::unique_ptr<TrainableModel> net_ = make_();
};

TEST_P(Nets, StepsDownhillLowerTheLoss) {
  const std::vector<double> losses = train(*net_, 4);
  EXPECT_LT(losses[3], losses[0]);
}

TEST_P(Nets, TrainingMovesTheStatisticsAndEvaluationDoesNot) {
  const auto statistics = [&] {
    std::vector<at::Tensor> values;
    for (const auto& [name, tensor] : net_->buffers()) {
      if (tensor.is_floating_point()) values.push_back(tensor.clone());
    }
    return at::cat(values);
  };
  const at::Tensor before = statistics();
  ASSERT_EQ(before.numel(), 16);
  predictions(*net_, some_images(4));
  EXPECT_TRUE(at::equal(statistics(), before));
  train(*net_, 1);
  EXPECT_TRUE(statistics().ne(before).all().item<bool>());
}

TEST_P(Nets, ACutIsProvenAndSmaller) {
  train(*net_, 3);
  const int64_t size = size_of(*net_);
  const PruneResult cut = net_->prune(example(), kHalf, {});
  EXPECT_TRUE(cut.proof.ran());
  EXPECT_TRUE(cut.proof.holds());
  EXPECT_EQ(cut.dense.params, size);
  EXPECT_EQ(cut.small.params, size_of(*net_));
  EXPECT_LT(size_of(*net_), size * 6 / 10);
}

TEST_P(Nets, ACutKeepsWhatWasTrained) {
  train(*net_, 3);
  ASSERT_TRUE(net_->prune(example(), kHalf, {}).proof.holds());
  const std::unique_ptr<TrainableModel> untrained = make_();
  ASSERT_TRUE(untrained->prune(example(), kHalf, {}).proof.holds());
  const at::Tensor x = some_images(4);
  EXPECT_FALSE(at::allclose(predictions(*net_, x), predictions(*untrained, x)));
}

TEST_P(Nets, ACutNetStaysInItsModeAndTrainsOn) {
  train(*net_, 1);
  net_->prune(example(), kHalf, {});
  const at::Tensor x = some_images(4);
  const at::Tensor in_training = net_->forward(x).detach();
  EXPECT_FALSE(at::allclose(predictions(*net_, x), in_training));
  const std::vector<double> losses = train(*net_, 4);
  EXPECT_LT(losses[3], losses[0]);
}

TEST_P(Nets, CutsFollowEachOther) {
  train(*net_, 1);
  net_->prune(example(), kHalf, {});
  const int64_t once = size_of(*net_);
  net_->save(folder_ / "between", example());
  train(*net_, 1);
  EXPECT_TRUE(net_->prune(example(), kHalf, {}).proof.holds());
  EXPECT_LT(size_of(*net_), once);
}

TEST_P(Nets, WhatIsSavedComputesTheSame) {
  train(*net_, 2);
  net_->prune(example(), kHalf, {});
  train(*net_, 2);
  net_->save(folder_ / "saved", example());
  const std::unique_ptr<TrainableModel> again = file_net(folder_ / "saved")();
  const at::Tensor x = some_images(4);
  EXPECT_TRUE(at::equal(predictions(*again, x), predictions(*net_, x)));
}

TEST_P(Nets, TheMemoryFormatDoesNotShowInTheFile) {
  train(*net_, 1);
  net_->save(folder_ / "plain", example());
  place(*net_, c10::kCPU, true);
  net_->save(folder_ / "channels_last", example());
  EXPECT_TRUE(test::same_bytes(read_file(folder_ / "channels_last"), read_file(folder_ / "plain")));
  for (const auto& [name, tensor] : net_->parameters()) {
    if (tensor.dim() != 4) continue;
    EXPECT_TRUE(tensor.is_contiguous(at::MemoryFormat::ChannelsLast)) << name;
  }
}

TEST_P(Nets, APlanAndTheValuesRestoreACutNet) {
  train(*net_, 1);
  std::vector<Plan> plans;
  for (int cut = 0; cut < 2; ++cut) {
    plans.push_back(net_->prune(example(), kHalf, {}).plan);
    train(*net_, 1);
  }
  const std::unique_ptr<TrainableModel> other = make_();
  for (const Plan& plan : plans) other->restore(plan);
  copy_values(*net_, *other);
  const at::Tensor x = some_images(4);
  EXPECT_TRUE(at::equal(predictions(*other, x), predictions(*net_, x)));
  net_->save(folder_ / "cut", example());
  other->save(folder_ / "restored", example());
  EXPECT_TRUE(test::same_bytes(read_file(folder_ / "cut"), read_file(folder_ / "restored")));
}

TEST_P(Nets, ARefusedCutLeavesTheNetAsItWas) {
  train(*net_, 2);
  const at::Tensor x = some_images(4);
  const at::Tensor before = predictions(*net_, x);
  ConfigList nonsense = kHalf;
  nonsense.entries[0].op_names = {"no_such_layer"};
  EXPECT_THROW(net_->prune(example(), nonsense, {}), ConfigError);
  EXPECT_TRUE(at::equal(predictions(*net_, x), before));
  EXPECT_TRUE(net_->prune(example(), kHalf, {}).proof.holds());
}

TEST_P(Nets, ANetThatGivesNoNumbersIsLeftAsItIs) {
  train(*net_, 1);
  const at::Tensor x = some_images(4);
  const at::Tensor before = predictions(*net_, x);
  const at::Tensor spoilt = one_weight(*net_);
  const at::Tensor value = spoilt.clone();
  at::Tensor(spoilt).fill_(std::numeric_limits<float>::infinity());
  const std::string message =
      refusal_of<UnsupportedError>([&] { net_->prune(example(), kHalf, {}); });
  EXPECT_NE(message.find("returns NaN or only infinities"), std::string::npos) << message;
  one_weight(*net_).copy_(value);
  EXPECT_TRUE(at::equal(predictions(*net_, x), before));
  EXPECT_TRUE(net_->prune(example(), kHalf, {}).proof.holds());
}

TEST_P(Nets, AfreshIsWholeAndUntrained) {
  train(*net_, 2);
  net_->prune(example(), kHalf, {});
  const std::unique_ptr<TrainableModel> fresh = net_->clone_architecture();
  EXPECT_EQ(size_of(*fresh), size_of(*make_()));
}

INSTANTIATE_TEST_SUITE_P(Kinds, Nets, testing::Values("live", "onnx", "script"),
                         [](const auto& kind) { return std::string(kind.param); });

TEST(OnnxNet, AnUntrainedFileIsWrittenByteForByte) {
  const test::TemporaryFolder folder;
  const auto net = test::small_net("onnx", folder)();
  net->save(folder / "copy.onnx", example());
  EXPECT_TRUE(test::same_bytes(read_file(folder / "copy.onnx"), read_file(folder / "small.onnx")));
}

TEST(OnnxNet, NamesAreThoseOfTheFile) {
  const test::TemporaryFolder folder;
  test::write_onnx(folder / "net.onnx", R"(
      net (float[N,4] x) => (float[N,3] y)
      <int64[2] shape = {-1, 4}, float ratio = {0.5}>
      {
        a = Reshape(x, shape)
        b = Mul(a, ratio)
        y = Gemm<transB=1>(b, fc_weight)
      })",
                   {{"fc_weight", "3x4"}});
  const auto net = file_net(folder / "net.onnx")();
  ASSERT_EQ(net->parameters().size(), 1);
  EXPECT_EQ(net->parameters()[0].first, "fc_weight");
  EXPECT_TRUE(named(net->buffers(), "shape").defined());
}

TEST(OnnxNet, TheLossSeesWhatStandsBeforeASoftmax) {
  const test::TemporaryFolder folder;
  test::write_onnx(folder / "net.onnx", R"(
      net (float[N,4] x) => (float[N,3] y)
      {
        a = Gemm<transB=1>(x, W)
        y = Softmax<axis=1>(a)
      })",
                   {{"W", "3x4"}});
  const auto net = file_net(folder / "net.onnx")();
  const at::Tensor x = at::ones({2, 4});
  const at::Tensor w = named(net->parameters(), "W").detach();
  EXPECT_TRUE(at::allclose(predictions(*net, x), x.mm(w.t())));
}

constexpr const char* kConvolutions = R"(
    net (float[N,2,6,6] x) => (float[N,3] y)
    {
      a = Conv<kernel_shape=[3,3], pads=[1,1,1,1]>(x, W, b)
      r = Relu(a)
      c = Conv<kernel_shape=[3,3], strides=[2,2]>(r, V, d)
      m = GlobalAveragePool(c)
      y = Flatten(m)
    })";

const std::vector<test::Weighted> kFilters = {
    {"W", "4x2x3x3"}, {"b", "4"}, {"V", "3x4x3x3"}, {"d", "3"}};

TEST(OnnxNet, NormsForTrainingBeginWithTheAnswersOfTheNetwork) {
  const test::TemporaryFolder folder;
  test::write_onnx(folder / "net.onnx", kConvolutions, kFilters);
  const auto plain = file_net(folder / "net.onnx")();
  const auto normed = file_net(folder / "net.onnx", {.batch_norm = true})();
  EXPECT_EQ(normed->parameters().size(), plain->parameters().size() + 4);
  const at::Tensor x = at::randn({5, 2, 6, 6});
  EXPECT_TRUE(at::allclose(predictions(*normed, x), predictions(*plain, x), 1e-5, 1e-6));
  normed->train(true);
  EXPECT_TRUE(at::allclose(normed->forward(x), predictions(*plain, x), 1e-4, 1e-5));
  // From now on another batch has statistics of its own.
  const at::Tensor other = 3 * at::randn({5, 2, 6, 6}) + 1;
  EXPECT_FALSE(at::allclose(normed->forward(other), predictions(*plain, other), 1e-2, 1e-2));
}

TEST(OnnxNet, NormsForTrainingAreFoldedIntoTheFile) {
  const test::TemporaryFolder folder;
  test::write_onnx(folder / "net.onnx", kConvolutions, kFilters);
  const auto net = file_net(folder / "net.onnx", {.batch_norm = true})();
  net->train(true);
  for (int i = 0; i < 3; ++i) net->forward(2 * at::randn({8, 2, 6, 6}) + 1);
  for (const NamedParameter& parameter : net->parameters()) {
    const at::NoGradGuard no_grad;
    at::Tensor(parameter.second).add_(0.1 * at::randn_like(parameter.second));
  }
  net->train(false);
  net->save(folder / "saved.onnx", at::Tensor());
  const auto saved = file_net(folder / "saved.onnx")();
  EXPECT_EQ(saved->parameters().size(), 4);
  const at::Tensor x = at::randn({5, 2, 6, 6});
  EXPECT_TRUE(at::allclose(predictions(*saved, x), predictions(*net, x), 1e-4, 1e-5));
}

TEST(OnnxNet, NormsForTrainingSurviveACut) {
  const test::TemporaryFolder folder;
  test::write_onnx(folder / "net.onnx", kConvolutions, kFilters);
  const auto net = file_net(folder / "net.onnx", {.batch_norm = true})();
  const at::Tensor x = at::randn({1, 2, 6, 6});
  net->train(true);
  net->forward(at::randn({8, 2, 6, 6}));
  net->train(false);
  const PruneResult cut = net->prune(x, kHalf, {});
  EXPECT_TRUE(cut.proof.holds());
  EXPECT_EQ(named(net->parameters(), "W").size(0), 2);
  const at::Tensor before = predictions(*net, x);
  net->train(true);
  net->forward(at::randn({8, 2, 6, 6}));
  net->train(false);
  net->save(folder / "small.onnx", x);
  EXPECT_TRUE(at::allclose(predictions(*file_net(folder / "small.onnx")(), x), predictions(*net, x),
                           1e-4, 1e-5));
}

TEST(OnnxNet, NormsForTrainingNeedAConvolutionWithABias) {
  const test::TemporaryFolder folder;
  test::write_onnx(folder / "net.onnx", R"(
      net (float[N,4] x) => (float[N,3] y) { y = Gemm<transB=1>(x, W) })",
                   {{"W", "3x4"}});
  EXPECT_THROW(file_net(folder / "net.onnx", {.batch_norm = true})(), ConfigError);
}

constexpr const char* kFixedBatch = R"(
    net (float[1,4] x) => (float[1,3] y)
    <int64[2] shape = {1, -1}>
    {
      a = Relu(x)
      b = Reshape(a, shape)
      y = Gemm<transB=1>(b, W)
    })";

TEST(OnnxNet, AFixedBatchIsRefusedWithTheNode) {
  const test::TemporaryFolder folder;
  test::write_onnx(folder / "net.onnx", kFixedBatch, {{"W", "3x4"}});
  const auto net = file_net(folder / "net.onnx")();
  EXPECT_EQ(net->forward(at::ones({1, 4})).size(0), 1);
  const std::string message = refusal_of<UnsupportedError>([&] { net->forward(at::ones({5, 4})); });
  EXPECT_NE(message.find("does not accept batches of 5 samples"), std::string::npos) << message;
  EXPECT_NE(message.find("Gemm"), std::string::npos) << message;
}

TEST(OnnxNet, ABatchThatIsFlattenedAwayIsRefusedWithTheNode) {
  const test::TemporaryFolder folder;
  test::write_onnx(folder / "net.onnx", R"(
      net (float[1,4] x) => (float[1,3] y)
      <int64[2] shape = {1, -1}>
      {
        a = Gemm<transB=1>(x, W)
        y = Reshape(a, shape)
      })",
                   {{"W", "3x4"}});
  const auto net = file_net(folder / "net.onnx")();
  const std::string message = refusal_of<UnsupportedError>([&] { net->forward(at::ones({5, 4})); });
  EXPECT_NE(message.find("Reshape"), std::string::npos) << message;
  EXPECT_NE(message.find("[1, 15]"), std::string::npos) << message;
}

TEST(OnnxNet, ABatchOfOneThatNothingReliesOnIsTrained) {
  const test::TemporaryFolder folder;
  test::write_onnx(folder / "net.onnx", R"(
      net (float[1,4] x) => (float[1,3] y) { y = Gemm<transB=1>(x, W) })",
                   {{"W", "3x4"}});
  EXPECT_EQ(file_net(folder / "net.onnx")()->forward(at::ones({5, 4})).size(0), 5);
}

TEST(OnnxNet, OpenSidesTakeTheExamples) {
  const test::TemporaryFolder folder;
  test::write_onnx(folder / "net.onnx", R"(
      net (float[N,3,H,W] x) => (float[N,10] y)
      {
        a = Conv(x, W1)
        b = Conv(a, W2)
        c = GlobalAveragePool(b)
        y = Flatten(c)
      })",
                   {{"W1", "8x3x3x3"}, {"W2", "10x8x1x1"}});
  const auto net = file_net(folder / "net.onnx")();
  const PruneResult cut = net->prune(at::zeros({1, 3, 12, 12}), kHalf, {});
  EXPECT_EQ(cut.dense.macs, 10 * 10 * (8 * 3 * 9 + 10 * 8));
  EXPECT_EQ(cut.plan.inputs, std::vector<std::string>{"1x3x12x12:float32"});
}

TEST(OnnxNet, TwoInputsAndNoParametersAreRefused) {
  const test::TemporaryFolder folder;
  test::write_onnx(folder / "two.onnx",
                   "net (float[N,4] a, float[N,4] b) => (float[N,4] y) { y = Add(a, b) }", {});
  EXPECT_NE(
      refusal_of<UnsupportedError>([&] { file_net(folder / "two.onnx")(); }).find("has 2 inputs"),
      std::string::npos);
  test::write_onnx(folder / "none.onnx", "net (float[N,4] a) => (float[N,4] y) { y = Relu(a) }",
                   {});
  EXPECT_NE(refusal_of<UnsupportedError>([&] {
              file_net(folder / "none.onnx")();
            }).find("nothing to train"),
            std::string::npos);
}

TEST(ScriptNet, KeepsModeAndExtraFiles) {
  const test::TemporaryFolder folder;
  const auto net = test::small_net("script", folder)();
  train(*net, 1);
  net->save(folder / "saved.pt", example());
  torch::jit::ExtraFilesMap extra = {{"notes.txt", ""}};
  const torch::jit::Module saved = torch::jit::load(folder / "saved.pt", at::kCPU, extra);
  EXPECT_FALSE(saved.is_training());
  EXPECT_EQ(extra["notes.txt"], "by hand");
}

TEST(ScriptNet, ATraceInEvaluationModeIsTrainedAllTheSame) {
  const test::TemporaryFolder folder;
  torch::jit::Module module("Traced");
  module.register_attribute("training", c10::BoolType::get(), true);
  module.register_parameter("w", at::ones({4}).set_requires_grad(true), false);
  module.register_buffer("mean", at::zeros({4}));
  module.register_buffer("var", at::ones({4}));
  module.define(
      "def forward(self, x):\n"
      "    return torch.batch_norm(x, self.w, None, self.mean, self.var, False, 0.1, 0.0, "
      "False)\n");
  module.save(folder / "traced.pt");
  const auto net = file_net(folder / "traced.pt")();
  const at::Tensor x = 5 * at::randn({16, 4}) + 3;
  EXPECT_TRUE(at::allclose(predictions(*net, x), x));
  net->train(true);
  EXPECT_TRUE(at::allclose(net->forward(x).mean(0), at::zeros({4}), 0, 1e-5));
  EXPECT_TRUE(at::allclose(named(net->buffers(), "mean"), 0.1 * x.mean(0)));
  // As it lies in the file it computes in evaluation mode, as it did.
  net->save(folder / "saved.pt", x);
  EXPECT_FALSE(torch::jit::load(folder / "saved.pt").is_training());
}

TEST(ScriptNet, AModuleWithoutParametersIsRefused) {
  const test::TemporaryFolder folder;
  torch::jit::Module module("Frozen");
  module.register_buffer("w", at::ones({3, 4}));
  module.define("def forward(self, x):\n    return torch.mm(x, torch.t(self.w))\n");
  module.save(folder / "frozen.pt");
  EXPECT_NE(refusal_of<UnsupportedError>([&] {
              file_net(folder / "frozen.pt")();
            }).find("nothing to train"),
            std::string::npos);
}

TEST(ScriptNet, ASharedParameterIsTrainedOnce) {
  const test::TemporaryFolder folder;
  torch::jit::Module module("Tied");
  const at::Tensor w = at::ones({4, 4}).set_requires_grad(true);
  module.register_parameter("a", w, false);
  module.register_parameter("b", w, false);
  module.define("def forward(self, x):\n    return torch.mm(torch.mm(x, self.a), self.b)\n");
  module.save(folder / "tied.pt");
  EXPECT_EQ(file_net(folder / "tied.pt")()->parameters().size(), 1);
}

TEST(ScriptNet, AFixedBatchIsRefused) {
  const test::TemporaryFolder folder;
  torch::jit::Module module("Fixed");
  module.register_parameter("w", at::ones({3, 4}).set_requires_grad(true), false);
  module.define("def forward(self, x):\n    return torch.mm(x.view([1, 4]), torch.t(self.w))\n");
  module.save(folder / "fixed.pt");
  const auto net = file_net(folder / "fixed.pt")();
  const std::string message = refusal_of<UnsupportedError>([&] { net->forward(at::ones({5, 4})); });
  EXPECT_NE(message.find("does not accept batches of 5 samples"), std::string::npos) << message;
  EXPECT_NE(message.find("[1, 4]"), std::string::npos) << message;
}

TEST(ScriptNet, SaysWhatTheProgramSays) {
  const test::TemporaryFolder folder;
  torch::jit::Module module("Choosy");
  module.register_parameter("w", at::ones({3, 4}).set_requires_grad(true), false);
  module.define(
      "def forward(self, x):\n"
      "    assert x.dim() == 2, 'two dimensions are expected'\n"
      "    return torch.mm(x, torch.t(self.w))\n");
  module.save(folder / "choosy.pt");
  const auto net = file_net(folder / "choosy.pt")();
  const auto message = [&](at::IntArrayRef dims) {
    return refusal_of<ModelError>([&] { net->forward(at::ones(dims)); });
  };
  EXPECT_EQ(message({5, 4, 1}),
            (folder / "choosy.pt") + ": AssertionError: two dimensions are expected");
  // The latest releases of libtorch name the operator first.
  const std::string shapes = message({5, 7});
  EXPECT_TRUE(shapes.starts_with(folder / "choosy.pt"));
  EXPECT_TRUE(shapes.ends_with(": mat1 and mat2 shapes cannot be multiplied (5x7 and 4x3)"));
}

TEST(FileNet, OtherFilesAreRefused) {
  const test::TemporaryFolder folder;
  write_file(folder / "text", "no model");
  write_file(folder / "zip", std::string("PK\x03\x04", 4) + "no model either");
  EXPECT_THROW(file_net(folder / "text")(), ModelError);
  EXPECT_THROW(file_net(folder / "zip")(), ModelError);
  EXPECT_THROW(file_net(folder / "nothing")(), IoError);
}

}  // namespace
}  // namespace parsimony::training
