// Statistics, recovery and training whose sums are those of several ranks' samples.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>
#include <mutex>
#include <sstream>

#include "parsimony/api/prune.h"
#include "parsimony/torch_io/tensor.h"
#include "parsimony/training/loop/labelled.h"
#include "parsimony/training/recovery/recover.h"
#include "parsimony/training/statistics/measure.h"
#include "tests/support/model.h"
#include "tests/training/on_ranks.h"
#include "tests/training/refitting.h"
#include "tests/training/residual_net.h"
#include "tests/training/small_nets.h"

namespace parsimony::training {
namespace {

using test::on_ranks;
using test::TextModel;

constexpr int64_t kSamples = 192;  // as many batches of 32 for one as for three

struct Network {
  Network() : model(test::kResidualNet, test::residual_weights()), settled(model.graph(), Plan()) {
    test::estimate_batch_norms(settled, batches_of(test::small_data(), kSamples), 32);
    dense = settled.graph();
    pruning = plan_pruning(dense, from_shorthand({.criterion = "l1", .ratio = 0.5}));
  }

  Recovered recovered(std::vector<RecoveryMethod> steps, const RankGroup* ranks) const {
    RecoverySettings settings;
    settings.steps = std::move(steps);
    settings.outputs.epochs = 6;
    settings.finetune = {};
    settings.finetune.epochs = 2;
    return recover(dense, pruning.plan, test::small_data(), settings, kSamples, ranks);
  }

  TextModel model;
  SmallNetwork settled;  ///< with the samples' statistics
  Graph dense;           ///< its graph
  Pruning pruning;
};

at::Tensor values_of(const TensorUpdate& update) {
  const auto count = static_cast<int64_t>(update.values.size() / sizeof(float));
  return at::from_blob(const_cast<std::byte*>(update.values.data()), {count}, at::kFloat);
}

double largest_difference(const Recovered& a, const Recovered& b) {
  EXPECT_EQ(a.updates.size(), b.updates.size());
  double largest = 0;
  for (size_t i = 0; i < a.updates.size(); ++i) {
    const at::Tensor expected = values_of(a.updates[i]);
    const at::Tensor lack = values_of(b.updates[i]) - expected;
    largest = std::max(largest, (lack.norm() / expected.norm()).item<double>());
  }
  return largest;
}

/// One line for each tensor that is not the same to the last bit.
std::string differences(const Recovered& a, const Recovered& b) {
  EXPECT_EQ(a.updates.size(), b.updates.size());
  std::ostringstream text;
  for (size_t i = 0; i < a.updates.size(); ++i) {
    const at::Tensor lack = values_of(b.updates[i]) - values_of(a.updates[i]);
    const auto apart = lack.ne(0).sum().item<int64_t>();
    if (apart == 0) continue;
    text << a.updates[i].tensor << ": " << apart << " of " << lack.numel() << " elements, from "
         << lack.ne(0).nonzero()[0].item<int64_t>() << " on, by up to "
         << lack.abs().max().item<double>() << "\n";
  }
  return text.str();
}

/// Of each of three ranks.
std::vector<Recovered> recovered_together(const std::vector<RecoveryMethod>& steps) {
  std::vector<Recovered> results(3);
  on_ranks(3, [&](const RankGroup& ranks) {
    results[static_cast<size_t>(ranks.rank())] = Network().recovered(steps, &ranks);
  });
  return results;
}

TEST(RankSums, StatisticsAreThoseOfOneProcess) {
  const Network net;
  const Graph& graph = net.dense;
  const Analysis& analysis = net.pruning.analysis;
  Needs needs;
  needs.channels = {Measure::kZeroShare, Measure::kMeanActivation, Measure::kActivationNorm,
                    Measure::kRank,      Measure::kTaylor,         Measure::kTaylorSquared,
                    Measure::kFisher,    Measure::kHessian};
  needs.inputs = {"W2", "W4"};
  const Batches batches = batches_of(test::small_data(), kSamples);
  const auto by = [&](const RankGroup* ranks) {
    return measurement(batches, {}, ranks)(graph, analysis.facts, analysis.coupling, needs);
  };
  const Statistics one = by(nullptr);
  on_ranks(3, [&](const RankGroup& ranks) {
    const Statistics all = by(&ranks);
    EXPECT_EQ(all.samples, kSamples);
    for (const auto& [measure, groups] : one.channels) {
      for (const GroupId g : groups.ids()) {
        ASSERT_EQ(all.channels.at(measure)[g].size(), groups[g].size());
        for (size_t c = 0; c < groups[g].size(); ++c) {
          const double expected = groups[g][c];
          EXPECT_NEAR(all.channels.at(measure)[g][c], expected, 1e-4 * std::abs(expected) + 1e-12);
        }
      }
    }
    for (const auto& [name, moments] : one.inputs) {
      EXPECT_EQ(all.inputs.at(name).rows, moments.rows);
      EXPECT_TRUE(all.inputs.at(name).second.isApprox(moments.second, 1e-6));
    }
  });
}

/// A batch takes the branch that its mean says. Where its halves are bright and dark, those of rank
/// 0 alone would take the other one.
TEST(RankSums, BranchesAreThoseOfOneProcess) {
  TextModel model(
      "net (float[N,3,32,32] x) => (float[N,4,32,32] y) <float half = {0.5}> { "
      "m = ReduceMean<keepdims = 0>(x) c = Greater(m, half) "
      "y = If(c) <then_branch = t () => (float[N,4,32,32] u) { f = Conv(x, W1) u = Conv(f, W2) }, "
      "else_branch = e () => (float[N,4,32,32] v) { g = Conv(x, V1) v = Conv(g, V2) }> }",
      {{"W1", "8x3x1x1"}, {"W2", "4x8x1x1"}, {"V1", "8x3x1x1"}, {"V2", "4x8x1x1"}});
  const Analysis analysis = analyse(model.graph());
  const Needs needs{.channels = {Measure::kMeanActivation}, .inputs = {"W2", "V2"}};
  const at::Tensor bright = at::cat({at::full({8, 3, 32, 32}, 0.9F), at::zeros({8, 3, 32, 32})});
  for (const bool mixed : {false, true}) {
    const Batches batches = [&](int64_t /*size*/) -> BatchSource {
      return [&, left = 4]() mutable -> std::optional<SampleBatch> {
        if (left-- == 0) return {};
        SampleBatch batch;
        batch.count = 16;
        batch.inputs = {mixed ? bright : bright.narrow(0, 0, 8).repeat({2, 1, 1, 1})};
        return batch;
      };
    };
    const auto by = [&](const RankGroup* ranks) {
      return measurement(batches, {}, ranks)(model.graph(), analysis.facts, analysis.coupling,
                                             needs);
    };
    EXPECT_EQ(by(nullptr).inputs.begin()->first, mixed ? "V2" : "W2");
    on_ranks(2, [&](const RankGroup& ranks) {
      const Statistics all = by(&ranks);
      EXPECT_EQ(all.samples, 64);
      ASSERT_EQ(all.inputs.size(), 1U);
      EXPECT_EQ(all.inputs.begin()->first, mixed ? "V2" : "W2");
      EXPECT_EQ(all.inputs.begin()->second.rows, 64 * 32 * 32);
    });
  }
}

TEST(RankSums, WhatDataReachOnOneRankOnlyIsZeroOnTheOthers) {
  Needs needs;
  needs.channels = {Measure::kTaylor, Measure::kZeroShare};
  needs.inputs = {"expert", "never", "shared"};
  on_ranks(2, [&](const RankGroup& ranks) {
    const bool first = ranks.rank() == 0;
    Statistics own;
    own.samples = first ? 1 : 3;
    own.channels[Measure::kTaylor].assign(3, {});
    own.channels[Measure::kZeroShare].assign(2, {});
    own.channels[Measure::kZeroShare][GroupId(0)] = {first ? 0.5 : 0.25};
    if (first) own.channels[Measure::kZeroShare][GroupId(1)] = {0.75};
    own.channels[Measure::kTaylor][GroupId(0)] = {2, 6};
    const Eigen::MatrixXd second = Eigen::MatrixXd::Constant(2, 2, first ? 1 : 2);
    own.inputs["shared"] = {first ? 4 : 5, second};
    if (first) {
      own.channels[Measure::kTaylor][GroupId(1)] = {4, 8, 12};
      own.inputs["expert"] = {7, second, Eigen::VectorXd::Constant(2, 3)};
    }
    const Statistics all = sum_over(ranks, own, needs);
    EXPECT_EQ(all.samples, 4);
    const PerGroup<std::vector<double>>& groups = all.channels.at(Measure::kTaylor);
    EXPECT_EQ(groups[GroupId(0)], (std::vector<double>{2, 6}));
    EXPECT_EQ(groups[GroupId(1)], (std::vector<double>{1, 2, 3}));
    EXPECT_TRUE(groups[GroupId(2)].empty());
    const PerGroup<std::vector<double>>& shares = all.channels.at(Measure::kZeroShare);
    EXPECT_EQ(shares[GroupId(0)], (std::vector<double>{0.3125}));
    EXPECT_EQ(shares[GroupId(1)], (std::vector<double>{0.75})) << "of what was seen";
    ASSERT_EQ(all.inputs.size(), 2U);
    EXPECT_EQ(all.inputs.at("shared").rows, 9);
    EXPECT_EQ(all.inputs.at("shared").second, Eigen::MatrixXd::Constant(2, 2, 3));
    EXPECT_EQ(all.inputs.at("shared").sum.size(), 0);
    EXPECT_EQ(all.inputs.at("expert").rows, 7);
    EXPECT_EQ(all.inputs.at("expert").second, Eigen::MatrixXd::Constant(2, 2, 1));
    EXPECT_EQ(all.inputs.at("expert").sum, Eigen::VectorXd::Constant(2, 3));
  });
}

TEST(RankSums, LayersAreFittedToAllSamples) {
  using enum RecoveryMethod;
  for (const RecoveryMethod step : {kBias, kBatchNorm, kLeastSquares}) {
    const Recovered one = Network().recovered({step}, nullptr);
    const std::vector<Recovered> several = recovered_together({step});
    ASSERT_GT(several[0].report.steps[0].layers, 0);
    EXPECT_LT(largest_difference(one, several[0]), 2e-4) << name_of(step);
    EXPECT_EQ(differences(several[0], several[1]), "");
    EXPECT_EQ(differences(several[0], several[2]), "");
    // Each alone would have found something else.
    EXPECT_NEAR(several[0].report.steps[0].after.error, one.report.steps[0].after.error,
                1e-3 * one.report.steps[0].after.error);
  }
}

TEST(RankSums, MatchingAndFineTuningTakeTheSameSteps) {
  using enum RecoveryMethod;
  for (const RecoveryMethod step : {kOutputs, kBlocks, kFinetune}) {
    const std::vector<Recovered> several = recovered_together({step});
    EXPECT_GT(several[0].report.steps[0].layers, 0) << name_of(step);
    EXPECT_EQ(differences(several[0], several[1]), "") << name_of(step);
    EXPECT_EQ(differences(several[0], several[2]), "") << name_of(step);
    if (step == kFinetune) continue;
    EXPECT_LT(several[0].report.steps[0].after.error, several[0].report.before.error);
  }
}

/// Parameters and running statistics after a few steps.
at::Tensor trained(const std::string& kind, const RankGroup* ranks) {
  const test::TemporaryFolder folder;
  static std::mutex drawing;  // the threads that stand for ranks share a generator
  const std::unique_ptr<TrainableModel> net = [&] {
    const std::lock_guard lock(drawing);
    at::manual_seed(1);
    return test::small_net(kind, folder)();
  }();
  const TrainContext where{test::small_data(), c10::Device(c10::kCPU), false, nullptr, ranks};
  TrainSettings settings;
  settings.epochs = 1;
  settings.batch = 48;  // the last one has 16
  settings.optimizer = OptimizerKind::kSgd;
  settings.lr = 1e-3;
  Trainer(labelled_training(*net, where, settings)).epoch(0);
  std::vector<at::Tensor> parts;
  for (const auto& [name, tensor] : all_tensors(*net)) {
    parts.push_back(tensor.detach().to(at::kFloat).flatten());
  }
  return at::cat(parts);
}

class SyncedNorms : public ::testing::TestWithParam<const char*> {};

TEST_P(SyncedNorms, OfEveryKindOfNetworkTrainAsInOneProcess) {
  const at::Tensor one = trained(GetParam(), nullptr);
  std::vector<at::Tensor> several(2);
  on_ranks(2, [&](const RankGroup& ranks) {
    several[static_cast<size_t>(ranks.rank())] = trained(GetParam(), &ranks);
  });
  EXPECT_LT(((several[0] - one).norm() / one.norm()).item<double>(), 1e-5);
  EXPECT_TRUE(several[0].equal(several[1]));
}

INSTANTIATE_TEST_SUITE_P(Nets, SyncedNorms, ::testing::Values("live", "onnx", "script"));

}  // namespace
}  // namespace parsimony::training
