// Schedules that go back to earlier weights or try cuts on data.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "parsimony/base/errors.h"
#include "parsimony/training/gradual_pruner.h"
#include "parsimony/training/net/trainable_model.h"
#include "parsimony/training/run/between_cuts.h"
#include "parsimony/training/run/ratio_search.h"
#include "parsimony/training/run/run.h"
#include "tests/training/small_nets.h"

namespace parsimony::training {
namespace {

using test::example;
using test::small_data;
using TheRun = training::TrainingRun;

Recipe recipe_with(PruningSchedule schedule) {
  Recipe recipe;
  recipe.train.epochs = 1;
  recipe.train.batch = 32;
  recipe.train.seed = 7;
  recipe.train.lr = 3e-3;
  recipe.prune.emplace();
  recipe.prune->warmup_epochs = 1;
  recipe.prune->schedule = schedule;
  recipe.prune->config = from_shorthand({.criterion = "l1", .ratio = 0.5});
  return recipe;
}

TrainingRunOptions untimed() {
  TrainingRunOptions options;
  options.latency = false;
  return options;
}

std::vector<at::Tensor> tensors_of_net(TrainableModel& net) {
  std::vector<at::Tensor> values;
  for (const auto& list : {net.parameters(), net.buffers()}) {
    for (const auto& [name, tensor] : list) values.push_back(tensor.detach().clone());
  }
  return values;
}

void expect_same(TrainableModel& a, TrainableModel& b) {
  const std::vector<at::Tensor> x = tensors_of_net(a);
  const std::vector<at::Tensor> y = tensors_of_net(b);
  ASSERT_EQ(x.size(), y.size());
  for (size_t i = 0; i < x.size(); ++i) EXPECT_TRUE(at::equal(x[i], y[i])) << i;
}

/// What is left of the first weights is exactly what they were there.
TEST(Lottery, WhatIsLeftReturnsToItsFirstWeights) {
  for (const char* kind : {"live", "onnx", "script"}) {
    const test::TemporaryFolder folder;
    const auto make = test::small_net(kind, folder);
    Recipe recipe = recipe_with(PruningSchedule::kLottery);
    recipe.prune->steps = 2;
    recipe.train.epochs = 0;
    TheRun run(make, small_data(), recipe, untimed());
    Rewind first(run.net());
    while (!run.done()) run.step();
    ASSERT_EQ(run.plans().size(), 2U) << kind;
    for (const Plan& plan : run.plans()) first.follow(plan);
    const auto now = tensors_of_net(run.net());
    first.restore(run.net());
    const auto expected = tensors_of_net(run.net());
    ASSERT_EQ(now.size(), expected.size());
    for (size_t i = 0; i < now.size(); ++i)
      EXPECT_TRUE(at::equal(now[i], expected[i])) << kind << i;
  }
}

TEST(Lottery, ReturnsToALaterEpochIfToldSo) {
  const auto make = test::live_small_net();
  Recipe recipe = recipe_with(PruningSchedule::kLottery);
  recipe.prune->steps = 2;
  recipe.prune->warmup_epochs = 2;
  recipe.prune->rewind_epoch = 1;
  recipe.train.epochs = 0;
  TheRun run(make, small_data(), recipe, untimed());
  run.step();
  Rewind after(run.net());
  while (!run.done()) run.step();
  for (const Plan& plan : run.plans()) after.follow(plan);
  const auto now = tensors_of_net(run.net());
  after.restore(run.net());
  const auto expected = tensors_of_net(run.net());
  for (size_t i = 0; i < now.size(); ++i) EXPECT_TRUE(at::equal(now[i], expected[i])) << i;
}

TEST(Annealing, KeepsTheNumberOfChannelsAndNeverEndsWorseThanItBegan) {
  const auto make = test::live_small_net();
  Recipe recipe = recipe_with(PruningSchedule::kAnnealing);
  recipe.prune->search_steps = 12;
  recipe.prune->search_samples = 128;
  TheRun run(make, small_data(), recipe, untimed());
  while (!run.is_warm()) run.step();
  PruneRequest request;
  request.seed = 7;
  RatioSearch search(run.net(), example(), *recipe.prune, request);
  const auto loss = [&](TrainableModel& trial) {
    const TrainContext place{small_data(), c10::kCPU};
    return loss_on(trial, place, recipe.train, 128);
  };
  const double first = search.step(run.net(), loss);
  while (!search.done()) search.step(run.net(), loss);
  EXPECT_LE(search.state().best_energy, first);
  const std::unique_ptr<TrainableModel> net = make();
  copy_values(run.net(), *net);
  request.config = search.best();
  const PruneResult cut = net->prune(example(), request);
  int removed = 0;
  for (const PlanGroup& group : cut.plan.groups) removed += group.size - group.kept;
  EXPECT_EQ(removed, 10);  // half of 8 and 12
  EXPECT_NEAR(loss(*net), search.state().best_energy, 1e-4);
  EXPECT_TRUE(cut.proof.holds());
}

TEST(Annealing, TakesCriteriaThatNeedData) {
  Recipe recipe = recipe_with(PruningSchedule::kAnnealing);
  recipe.prune->config = from_shorthand({.criterion = "taylor", .ratio = 0.5});
  recipe.prune->search_steps = 2;
  recipe.prune->search_samples = 64;
  recipe.train.epochs = 0;
  TheRun run(test::live_small_net(), small_data(), recipe, untimed());
  while (!run.done()) run.step();
  ASSERT_EQ(run.plans().size(), 1U);
  int removed = 0;
  for (const PlanGroup& group : run.plans()[0].groups) removed += group.size - group.kept;
  EXPECT_EQ(removed, 10);
}

TEST(Rounding, KeepsTheSum) {
  EXPECT_EQ(rounded_with_sum({1.5, 2.25, 3.25}), (std::vector<int>{2, 2, 3}));
  EXPECT_EQ(rounded_with_sum({0.4, 0.4, 0.2}), (std::vector<int>{1, 0, 0}));
  EXPECT_EQ(rounded_with_sum({4, 6}), (std::vector<int>{4, 6}));
}

/// A run that was stopped at any step and taken up again ends as one that went through.
TEST(Schedules, GoOnFromAnyStep) {
  for (const PruningSchedule schedule : {PruningSchedule::kLottery, PruningSchedule::kAnnealing}) {
    const test::TemporaryFolder folder;
    const auto make = test::live_small_net();
    Recipe recipe = recipe_with(schedule);
    recipe.prune->search_steps = 3;
    recipe.prune->search_samples = 64;
    if (schedule == PruningSchedule::kLottery) recipe.prune->steps = 2;
    recipe.prune->penalty = {.slimming = 1e-3, .group = 1e-3};
    TheRun whole(make, small_data(), recipe, untimed());
    while (!whole.done()) whole.step();
    const std::string path = folder / "run";
    bool done = false;
    while (!done) {
      TheRun part(make, small_data(), recipe, untimed());
      part.load(path, "id");
      part.step();
      part.save(path, "id");
      done = part.done();
      if (done) expect_same(part.net(), whole.net());
    }
  }
}

/// After one step of plain gradient descent, -g·w summed over a filter is the movement.
TEST(Movement, AddsUpGradientTimesWeight) {
  const std::unique_ptr<TrainableModel> net = test::live_small_net()();
  Movement movement(*net);
  at::Tensor w;
  for (const auto& [name, parameter] : net->parameters()) {
    if (name == "conv1.weight") w = parameter;
  }
  at::Tensor expected = at::zeros({8}, at::kDouble);
  for (int step = 0; step < 3; ++step) {
    at::manual_seed(step);
    net->forward(at::randn({4, 3, 32, 32})).square().sum().backward();
    movement.see(*net);
    expected -= (w.grad() * w.detach()).to(at::kDouble).sum({1, 2, 3});
    for (auto& [name, parameter] : net->parameters()) parameter.mutable_grad().reset();
  }
  const at::Tensor found = movement.sums().at("conv1.weight").to(at::kDouble).sum({1, 2, 3});
  EXPECT_TRUE(at::allclose(found, expected, 1e-5, 1e-5));
}

/// The channels that moved least towards larger weights go, in a run that is stopped and taken up.
TEST(Movement, DecidesTheCutOfARun) {
  const test::TemporaryFolder folder;
  const auto make = test::live_small_net();
  Recipe recipe = recipe_with(PruningSchedule::kOneShot);
  recipe.prune->config = from_shorthand({.criterion = "movement", .ratio = 0.5});
  recipe.prune->warmup_epochs = 2;
  recipe.train.epochs = 0;
  TheRun run(make, small_data(), recipe, untimed());
  run.step();
  run.save(folder / "run", "id");
  TheRun again(make, small_data(), recipe, untimed());
  ASSERT_TRUE(again.load(folder / "run", "id"));
  while (!run.done()) run.step();
  while (!again.done()) again.step();
  expect_same(run.net(), again.net());
  ASSERT_EQ(run.plans().size(), 1U);
  EXPECT_FALSE(run.plans()[0].empty());
}

TEST(Movement, NeedsATraining) {
  const std::unique_ptr<TrainableModel> net = test::live_small_net()();
  PruneServices services;
  services.measure = [](auto&&...) { return Statistics(); };
  try {
    net->prune(example(), from_shorthand({.criterion = "movement", .ratio = 0.5}), services);
    FAIL();
  } catch (const ConfigError& error) {
    EXPECT_STREQ(error.what(),
                 "criterion \"movement\" is added up while a network trains: use it in a recipe's "
                 "\"prune\", with `parsimony train` or `sweep`");
  }
}

TEST(Penalties, MakeChannelsSmaller) {
  const auto make = test::live_small_net();
  Recipe recipe = recipe_with(PruningSchedule::kOneShot);
  recipe.prune->warmup_epochs = 3;
  const auto norm_of = [&](const PenaltySettings& penalty) {
    recipe.prune->penalty = penalty;
    TheRun run(make, small_data(), recipe, untimed());
    while (!run.is_warm()) run.step();
    return squared_norms(run.net().groups(example(), Granularity::kChannel)[0])
        .sum()
        .item<double>();
  };
  EXPECT_LT(norm_of({.slimming = 0, .group = 0.05}), 0.9 * norm_of({}));
}

TEST(Penalties, SlimmingNeedsABatchNorm) {
  const test::TemporaryFolder folder;
  const std::string path = folder / "plain.onnx";
  test::write_onnx(path, R"(
      plain (float[N,3,32,32] x) => (float[N,10] y)
      {
        a = Conv<strides=[4,4]>(x, W1)
        b = Relu(a)
        f = GlobalAveragePool(b)
        g = Flatten(f)
        y = Gemm<transB=1>(g, W3)
      })",
                   {{"W1", "8x3x3x3"}, {"W3", "10x8"}});
  Recipe recipe = recipe_with(PruningSchedule::kOneShot);
  recipe.prune->penalty.slimming = 1e-3;
  TheRun run(file_net(path), small_data(), recipe, untimed());
  try {
    run.step();
    FAIL();
  } catch (const ConfigError& error) {
    EXPECT_STREQ(error.what(),
                 "penalty: slimming: no BatchNorm scales prunable channels; use \"group\" "
                 "instead");
  }
}

TEST(GradualPruner, RefusesSchedulesThatNeedARun) {
  PruneSettings settings = *recipe_with(PruningSchedule::kLottery).prune;
  EXPECT_THROW(GradualPruner{settings}, UnsupportedError);
  settings.schedule = PruningSchedule::kAnnealing;
  EXPECT_THROW(GradualPruner{settings}, UnsupportedError);
}

}  // namespace
}  // namespace parsimony::training
