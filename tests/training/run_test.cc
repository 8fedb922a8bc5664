// A recipe on every kind of TrainableModel, with and without a checkpoint in between.
#include "parsimony/training/run/run.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <numeric>
#include <set>
#include <string>

#include "parsimony/base/errors.h"
#include "parsimony/base/files.h"
#include "parsimony/base/hash.h"
#include "parsimony/training/net/trainable_model.h"
#include "tests/training/small_nets.h"

namespace parsimony::training {
namespace {

using test::predictions;
using test::size_of;
using test::small_data;

using TheRun = training::TrainingRun;  // within a test, Run is one of its own members

Recipe half_off(int epochs) {
  Recipe recipe;
  recipe.train.epochs = epochs;
  recipe.train.batch = 32;
  recipe.train.seed = 7;
  recipe.train.lr = 3e-3;
  recipe.prune.emplace();
  recipe.prune->warmup_epochs = 1;
  recipe.prune->config = from_shorthand({.criterion = "l1", .ratio = 0.5});
  return recipe;
}

TrainingRunOptions quick() {
  TrainingRunOptions options;
  options.latency = false;
  return options;
}

/// All that the network is, as one vector.
at::Tensor values_of(TrainableModel& net) {
  std::vector<at::Tensor> values;
  for (const auto& list : {net.parameters(), net.buffers()}) {
    for (const auto& [name, tensor] : list) {
      values.push_back(tensor.detach().flatten().to(at::kDouble));
    }
  }
  return at::cat(values);
}

std::vector<double> losses_of(const LedgerPoint& point) {
  std::vector<double> losses;
  for (const LedgerPoint::Epoch& epoch : point.epochs) losses.push_back(epoch.loss);
  return losses;
}

void finish(TheRun& run) {
  while (!run.done()) run.step();
}

class Runs : public testing::TestWithParam<const char*> {
 protected:
  std::string bytes_of(TheRun& run) {
    run.net().save(folder_ / "bytes", run.example());
    return read_file(folder_ / "bytes");
  }

  test::TemporaryFolder folder_;
  test::MakeNet make_ = test::small_net(GetParam(), folder_);
};

TEST_P(Runs, WarmsUpCutsAndTrains) {
  TheRun run(make_, small_data(), half_off(1), quick());
  EXPECT_FALSE(run.is_warm());
  finish(run);
  EXPECT_TRUE(run.is_warm());
  const LedgerPoint& point = run.point();
  EXPECT_EQ(point.before.total, 64);
  EXPECT_EQ(point.pruned.total, 64);
  EXPECT_EQ(point.after.total, 64);
  ASSERT_TRUE(point.proof);
  EXPECT_TRUE(point.proof->holds());
  EXPECT_EQ(point.params.after, size_of(run.net()));
  EXPECT_LT(point.params.after, point.params.before);
  EXPECT_GT(point.bytes.after, 4 * point.params.after);
  EXPECT_LT(point.bytes.after, point.bytes.before);
  EXPECT_EQ(point.epochs.size(), 1);
  EXPECT_GT(point.warm_up.total(), 0);
  ASSERT_EQ(point.layers.size(), 3);
  EXPECT_EQ(std::accumulate(point.layers.begin(), point.layers.end(), int64_t{0},
                            [](int64_t sum, const auto& layer) { return sum + layer.before; }),
            8 + 12 + 10);
  EXPECT_EQ(std::accumulate(point.layers.begin(), point.layers.end(), int64_t{0},
                            [](int64_t sum, const auto& layer) { return sum + layer.after; }),
            4 + 6 + 10);
}

TEST(RunLayers, CountOutputsAlsoWhereTheMatrixHasItsInputsFirst) {
  const test::TemporaryFolder folder;
  test::write_onnx(folder / "in_first.onnx", R"(
      net (float[N,3,32,32] x) => (float[N,10] y)
      {
        a = Flatten(x)
        b = MatMul(a, W1)
        c = Relu(b)
        y = MatMul(c, W2)
      })",
                   {{"W1", "3072x20"}, {"W2", "20x10"}});
  TheRun run(file_net(folder / "in_first.onnx"), small_data(), half_off(1), quick());
  finish(run);
  ASSERT_EQ(run.point().layers.size(), 2);
  EXPECT_EQ(run.point().layers[0].before, 20);
  EXPECT_EQ(run.point().layers[0].after, 10);
  EXPECT_EQ(run.point().layers[1].before, 10);
  EXPECT_EQ(run.point().layers[1].after, 10);
}

/// The run is taken up again at every step that there is.
TEST_P(Runs, TakenUpAgainAnywhereItEndsAsAnUndisturbedOne) {
  Recipe recipe = half_off(3);
  recipe.prune->schedule = PruningSchedule::kAgp;
  recipe.prune->steps = 2;
  recipe.prune->epochs_between = 2;
  recipe.train.schedule = RateSchedule::kCosine;
  recipe.train.flip = true;
  TheRun whole(make_, small_data(), recipe, quick());
  finish(whole);

  auto run = std::make_unique<TheRun>(make_, small_data(), recipe, quick());
  int times = 0;
  while (!run->done()) {
    run->step();
    run->save(folder_ / "checkpoint", "this run");
    at::manual_seed(99);
    run = std::make_unique<TheRun>(make_, small_data(), recipe, quick());
    ASSERT_TRUE(run->load(folder_ / "checkpoint", "this run"));
    ++times;
  }
  EXPECT_EQ(times, 11);
  EXPECT_TRUE(at::equal(values_of(run->net()), values_of(whole.net())));
  EXPECT_EQ(bytes_of(*run), bytes_of(whole));
  EXPECT_EQ(losses_of(run->point()), losses_of(whole.point()));
  EXPECT_EQ(run->point().after, whole.point().after);
  EXPECT_EQ(run->plans(), whole.plans());
}

INSTANTIATE_TEST_SUITE_P(Kinds, Runs, testing::Values("live", "onnx", "script"),
                         [](const auto& kind) { return std::string(kind.param); });

TEST(TrainingRun, MomentumAndDropoutAreTakenUpAgain) {
  const test::TemporaryFolder folder;
  Recipe recipe = half_off(2);
  recipe.prune.reset();
  recipe.train.optimizer = OptimizerKind::kSgd;
  const test::MakeNet make = test::live_small_net(0.5);
  TheRun whole(make, small_data(), recipe, quick());
  finish(whole);
  TheRun begun(make, small_data(), recipe, quick());
  begun.step();
  begun.step();  // evaluated, and one epoch
  begun.save(folder / "checkpoint", "");
  TheRun rest(make, small_data(), recipe, quick());
  ASSERT_TRUE(rest.load(folder / "checkpoint", ""));
  finish(rest);
  EXPECT_TRUE(at::equal(values_of(rest.net()), values_of(whole.net())));
}

TEST(TrainingRun, WithoutACheckpointNothingIsLoaded) {
  const test::TemporaryFolder folder;
  TheRun run(test::live_small_net(), small_data(), half_off(1), quick());
  EXPECT_FALSE(run.load(folder / "checkpoint", ""));
}

TEST(TrainingRun, TheCheckpointOfAnotherRunIsRefused) {
  const test::TemporaryFolder folder;
  TheRun run(test::live_small_net(), small_data(), half_off(1), quick());
  run.save(folder / "checkpoint", "one");
  EXPECT_THROW(run.load(folder / "checkpoint", "other"), ConfigError);
  write_file(folder / "checkpoint", "nonsense");
  EXPECT_THROW(run.load(folder / "checkpoint", "one"), ModelError);
}

TEST(TrainingRun, TheSeedDecides) {
  const auto trained = [](uint64_t seed) {
    Recipe recipe = half_off(1);
    recipe.train.seed = seed;
    TheRun run(test::live_small_net(), small_data(), recipe, quick());
    finish(run);
    return values_of(run.net());
  };
  EXPECT_TRUE(at::equal(trained(1), trained(1)));
  EXPECT_FALSE(at::equal(trained(1), trained(2)));
}

/// A rate of zero: no epoch is better than the first.
Recipe hopeless(int epochs) {
  Recipe recipe = half_off(epochs);
  recipe.prune.reset();
  recipe.train.optimizer = OptimizerKind::kSgd;
  recipe.train.lr = 0;
  return recipe;
}

/// Its accuracy never changes: what it says does not depend on its statistics.
test::MakeNet onnx_without_statistics(const test::TemporaryFolder& folder) {
  test::write_onnx(folder / "plain.onnx", R"(
      net (float[N,3,32,32] x) => (float[N,10] y)
      {
        a = GlobalAveragePool(x)
        b = Flatten(a)
        y = Gemm<transB=1>(b, W)
      })",
                   {{"W", "10x3"}});
  return file_net(folder / "plain.onnx");
}

TEST(TrainingRun, StopsEarlyWhereNothingGetsBetter) {
  const test::TemporaryFolder folder;
  Recipe recipe = hopeless(20);
  recipe.train.early_stop = 2;
  TheRun run(onnx_without_statistics(folder), small_data(), recipe, quick());
  finish(run);
  EXPECT_EQ(run.point().epochs.size(), 3);
  EXPECT_EQ(run.point().after, run.point().epochs.back().score);
}

TEST(TrainingRun, EpochsThatAreNotJudgedAreNoReasonToStop) {
  const test::TemporaryFolder folder;
  Recipe recipe = hopeless(20);
  recipe.train.early_stop = 2;
  recipe.train.evaluate_every = 3;
  TheRun run(onnx_without_statistics(folder), small_data(), recipe, quick());
  finish(run);
  EXPECT_EQ(run.point().epochs.size(), 6);
  EXPECT_EQ(run.point().after.total, 64);
}

TEST(TrainingRun, EvaluatesAsOftenAsAsked) {
  const test::TemporaryFolder folder;
  Recipe recipe = hopeless(5);
  recipe.train.evaluate_every = 2;
  TheRun run(onnx_without_statistics(folder), small_data(), recipe, quick());
  finish(run);
  std::vector<int64_t> totals;
  for (const LedgerPoint::Epoch& epoch : run.point().epochs) totals.push_back(epoch.score.total);
  EXPECT_EQ(totals, (std::vector<int64_t>{0, 64, 0, 64, 64}));
}

TEST(TrainingRun, DataOfOtherClassesIsRefused) {
  const test::TemporaryFolder folder;
  test::write_onnx(folder / "three.onnx", R"(
      net (float[N,3,32,32] x) => (float[N,3] y)
      {
        a = GlobalAveragePool(x)
        y = Flatten(a)
        unused = Conv(x, W)
      })",
                   {{"W", "1x3x1x1"}});
  TheRun run(file_net(folder / "three.onnx"), small_data(), hopeless(1), quick());
  try {
    run.step();
    FAIL();
  } catch (const ModelError& error) {
    EXPECT_NE(std::string(error.what()).find("the data has 10 classes"), std::string::npos);
  }
}

TEST(TrainingRun, ExternalDataCountsAsTheModelsBytes) {
  const test::TemporaryFolder folder;
  const test::MakeNet make = test::small_net("onnx", folder);
  test::move_weights_out(folder / "small.onnx");
  Recipe recipe = half_off(1);
  recipe.prune->warmup_epochs = 0;
  TheRun run(make, small_data(), recipe, quick());
  finish(run);
  EXPECT_GT(run.point().bytes.before, run.point().params.before * 4);
}

// What a ledger or a checkpoint of an earlier version calls a run must not become another's name.
TEST(RunKey, IsAHashOfAllThatDeterminesTheResult) {
  const test::TemporaryFolder folder;
  write_file(folder / "teacher", "t");
  write_file(folder / "other", "u");
  Dataset data;
  data.fingerprint = "f";
  const LedgerOrigin::Model model{"m", "s"};
  EXPECT_EQ(run_key(model, data, "{}"), sha256("1\nm\ns\nf\n{}"));
  std::set<std::string> keys = {run_key(model, data, "{}"),
                                run_key(model, data, "{ }"),
                                run_key({"n", "s"}, data, "{}"),
                                run_key({"m", "r"}, data, "{}"),
                                run_key(model, data, "{}", folder / "teacher"),
                                run_key(model, data, "{}", folder / "other")};
  data.fingerprint = "g";
  keys.insert(run_key(model, data, "{}"));
  EXPECT_EQ(keys.size(), 7U);
}

}  // namespace
}  // namespace parsimony::training
