// Losses between outputs and targets of the data.
#include "parsimony/training/loop/target_loss.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>

#include "parsimony/api/prune.h"
#include "parsimony/base/errors.h"
#include "parsimony/training/recovery/recover.h"
#include "parsimony/training/statistics/measure.h"
#include "tests/support/model.h"

namespace parsimony::training {
namespace {

using test::TextModel;

/// Boxes, logits and their probabilities, and a mask.
const char* const kHeads = R"(
    net (float[N,3,4,4] x) => (float[N,4,4,4] boxes, float[N,5,4,4] logits, float[N,5,4,4] classes,
                               float[N,1,4,4] mask)
    {
      a = Conv(x, W1, B1)
      b = Relu(a)
      boxes = Conv(b, W2)
      logits = Conv(b, W3)
      classes = Softmax<axis=1>(logits)
      m = Conv(b, W4)
      mask = Sigmoid(m)
    })";

class TargetLosses : public testing::Test {
 protected:
  double of(const std::string& spec, const std::vector<at::Tensor>& outputs,
            const std::vector<at::Tensor>& targets) const {
    std::vector<bool> given;
    for (const at::Tensor& target : targets) given.push_back(target.defined());
    SampleBatch batch;
    batch.targets = targets;
    return target_loss(model_.graph(), parse_losses(spec), given)(outputs, batch).item<double>();
  }

  std::string error_of(const std::string& spec, const std::vector<at::Tensor>& targets) const {
    try {
      of(spec, outputs_, targets);
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  }

  TextModel model_{
      kHeads,
      {{"W1", "8x3x1x1"}, {"B1", "8"}, {"W2", "4x8x1x1"}, {"W3", "5x8x1x1"}, {"W4", "1x8x1x1"}}};
  const at::Tensor none_;
  const at::Tensor logits_ = at::arange(160, at::kFloat).reshape({2, 5, 4, 4}).remainder(7);
  const at::Tensor mask_ = at::full({2, 1, 4, 4}, 0.25F);
  const std::vector<at::Tensor> outputs_ = {at::zeros({2, 4, 4, 4}), logits_, logits_.softmax(1),
                                            mask_};
};

TEST_F(TargetLosses, OfNumbers) {
  const at::Tensor target = at::full({2, 4, 4, 4}, 2.0F);
  EXPECT_NEAR(of("mse", outputs_, {target, none_, none_, none_}), 4, 1e-6);
  EXPECT_NEAR(of("l1", outputs_, {target, none_, none_, none_}), 2, 1e-6);
  EXPECT_NEAR(of("huber:delta=0.5", outputs_, {target, none_, none_, none_}), 0.5 * (2 - 0.25),
              1e-6);
  EXPECT_NEAR(of("boxes=l1:weight=3,mask=mse", outputs_, {target, none_, none_, mask_ + 1}),
              3 * 2 + 1, 1e-6);
}

TEST_F(TargetLosses, OfClassesEventsAndDistributions) {
  const at::Tensor classes = at::arange(32, at::kLong).reshape({2, 4, 4}).remainder(5);
  const double by_logits = of("cross_entropy", outputs_, {none_, classes, none_, none_});
  EXPECT_NEAR(by_logits, at::cross_entropy_loss(logits_, classes).item<double>(), 1e-5);
  EXPECT_NEAR(of("cross_entropy", outputs_, {none_, none_, classes, none_}), by_logits, 1e-5)
      << "a Softmax is taken as it is";
  const at::Tensor some = at::where(classes.eq(4), at::full_like(classes, 255), classes);
  EXPECT_NEAR(of("cross_entropy:ignore=255", outputs_, {none_, some, none_, none_}),
              at::cross_entropy_loss(logits_, some, {}, at::Reduction::Mean, 255).item<double>(),
              1e-5);
  const at::Tensor nothing = at::full_like(classes, 255);
  EXPECT_EQ(of("cross_entropy:ignore=255", outputs_, {none_, nothing, none_, none_}), 0);

  EXPECT_NEAR(of("bce", outputs_, {none_, none_, none_, at::ones_like(mask_)}), std::log(4), 1e-6);
  EXPECT_NEAR(of("logits=bce", outputs_, {none_, at::zeros_like(logits_), none_, none_}),
              (logits_.exp() + 1).log().mean().item<double>(), 1e-5);

  const at::Tensor requested = logits_.flip(1).softmax(1);
  const double divergence =
      (requested * (requested.log() - outputs_[2].log())).sum(1).mean().item<double>();
  EXPECT_NEAR(of("kl", outputs_, {none_, requested, none_, none_}), divergence, 1e-5);
  EXPECT_NEAR(of("kl", outputs_, {none_, none_, requested, none_}), divergence, 1e-5);
}

TEST_F(TargetLosses, OfSequencesInEitherOrder) {
  at::manual_seed(1);
  const at::Tensor scores = at::randn({2, 6, 5});
  const at::Tensor requested = at::tensor({1, 2, -1, 3, 3, 1}, at::kLong).reshape({2, 3});
  const double loss = at::ctc_loss(scores.transpose(0, 1).log_softmax(2), requested,
                                   at::tensor({6, 6}, at::kLong), at::tensor({2, 3}, at::kLong))
                          .item<double>();
  std::vector<at::Tensor> outputs = outputs_;
  outputs[1] = scores;
  EXPECT_NEAR(of("ctc", outputs, {none_, requested, none_, none_}), loss, 1e-5);
  outputs[1] = scores.transpose(0, 1);
  EXPECT_NEAR(of("ctc", outputs, {none_, requested, none_, none_}), loss, 1e-5);
  EXPECT_NE(of("ctc:blank=4", outputs, {none_, requested, none_, none_}), loss);
}

TEST_F(TargetLosses, SayWhatDoesNotFit) {
  const at::Tensor classes = at::full({2, 4, 4}, 5, at::kLong);
  EXPECT_EQ(
      error_of("cross_entropy", {none_, classes, none_, none_}),
      "loss cross_entropy: the target of the output \"logits\" contains 5, expected numbers in "
      "[0, 4]");
  EXPECT_EQ(error_of("mse", {at::zeros({2, 4}), none_, none_, none_}),
            "loss mse: the output \"boxes\" is [2, 4, 4, 4], its target [2, 4]");
  EXPECT_EQ(
      error_of("bce", {none_, none_, none_, mask_ + 1}),
      "loss bce: the target of the output \"mask\" contains 1.25, expected numbers in [0, 1]");
  EXPECT_EQ(error_of("ctc", {none_, classes, none_, none_}),
            "loss ctc: the output \"logits\" is [2, 5, 4, 4], its target [2, 4, 4]");
  EXPECT_EQ(error_of("box=mse", {mask_, none_, none_, none_}),
            "loss: the network has no output \"box\"; its outputs are \"boxes\", \"logits\", "
            "\"classes\", \"mask\"");
  EXPECT_EQ(error_of("mask=mse", {mask_, none_, none_, none_}),
            "loss: the data has no targets for the output \"mask\"; add an array of that name with "
            "as many samples as the inputs");
  EXPECT_EQ(error_of("mse", {none_, none_, none_, none_}).substr(0, 30),
            "loss: the data has no targets ");
}

/// What the network should answer is what it answers with other weights.
Calibration lessons(int64_t samples) {
  Calibration data;
  data.samples = samples;
  data.values = 3 * 4 * 4;
  data.batches = [samples](int64_t size) -> BatchSource {
    return [samples, size, first = int64_t{0}]() mutable -> std::optional<SampleBatch> {
      if (first >= samples) return {};
      at::manual_seed(static_cast<uint64_t>(first));
      SampleBatch batch;
      batch.count = std::min(size, samples - first);
      batch.inputs = {at::randn({batch.count, 3, 4, 4})};
      const at::Tensor sum = batch.inputs[0].sum(1, /*keepdim=*/true);
      batch.targets = {sum.expand({batch.count, 4, 4, 4}), {}, {}, sum.gt(0).to(at::kFloat)};
      first += batch.count;
      return batch;
    };
  };
  return data;
}

TEST_F(TargetLosses, TrainASmallNetwork) {
  const Pruning pruning =
      plan_pruning(model_.graph(), from_shorthand({.criterion = "l1", .ratio = 0.25}));
  Calibration data = lessons(128);
  data.loss =
      target_loss(model_.graph(), parse_losses("boxes=huber,mask=bce"), {true, false, false, true});
  RecoverySettings settings;
  settings.steps = {RecoveryMethod::kFinetune};
  settings.outputs = {.epochs = 30, .lr = 2e-2};
  const RecoveryReport report = recover(model_.graph(), pruning.plan, data, settings).report;
  ASSERT_TRUE(report.before.loss && report.steps[0].after.loss && report.dense_loss);
  EXPECT_LT(*report.steps[0].after.loss, 0.6 * *report.before.loss);
  data.loss = {};
  EXPECT_THROW(recover(model_.graph(), pruning.plan, data, settings), ConfigError);
}

TEST_F(TargetLosses, GiveCriteriaTheirGradients) {
  Graph& graph = model_.graph();
  const Analysis analysis = analyse(graph);
  Needs needs;
  needs.channels = {Measure::kFisher, Measure::kTaylorSquared};
  const auto scores = [&](const Loss& loss) {
    const Statistics statistics =
        measure(graph, analysis.facts, analysis.coupling, needs, lessons(16).batches, loss);
    return statistics.channels.at(Measure::kFisher).front();
  };
  const Loss boxes = target_loss(graph, parse_losses("boxes=mse"), {true, false, false, true});
  const Loss own = [](const std::vector<at::Tensor>& outputs, const SampleBatch& batch) {
    return (outputs[0] - batch.targets[0]).square().mean();
  };
  const std::vector<double> by_name = scores(boxes);
  const std::vector<double> by_function = scores(own);
  ASSERT_EQ(by_name.size(), by_function.size());
  for (size_t c = 0; c < by_name.size(); ++c) {
    EXPECT_NEAR(by_name[c], by_function[c], 1e-6 * std::abs(by_name[c]));
  }
  EXPECT_NE(by_name, scores({})) << "the distance to the network's own outputs";
}

}  // namespace
}  // namespace parsimony::training
