// Batches that run at the same time.
#include "parsimony/torch_io/side_by_side.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <ATen/core/grad_mode.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "parsimony/api/prune.h"
#include "parsimony/api/recovery/walk.h"
#include "parsimony/base/errors.h"
#include "parsimony/torch_io/machine.h"
#include "parsimony/training/statistics/batches.h"
#include "parsimony/training/statistics/measure.h"
#include "tests/support/model.h"
#include "tests/training/residual_net.h"
#include "tests/training/small_nets.h"

namespace parsimony::training {
namespace {

using torch_io::batches_at_once;
using torch_io::side_by_side;

class SideBySide : public testing::Test {
 protected:
  SideBySide() {
    torch_io::use_cores(2);
    at::set_num_threads(2);
  }
  ~SideBySide() override { at::set_num_threads(before_); }

  const int before_ = at::get_num_threads();
};

TEST_F(SideBySide, CallsEachOnceWithOneThreadForItsOperators) {
  EXPECT_EQ(batches_at_once(c10::kCPU), 2);
  EXPECT_EQ(batches_at_once(c10::kCUDA), 1);
  std::vector<int> threads(5);
  std::vector<int> gradients(5);
  const at::NoGradGuard no_grad;
  side_by_side(5, c10::kCPU, [&](int64_t i) {
    threads[i] += at::get_num_threads();
    gradients[i] += at::GradMode::is_enabled() ? 1 : 0;
  });
  EXPECT_EQ(threads, (std::vector<int>{1, 1, 1, 1, 1}));
  EXPECT_EQ(gradients, std::vector<int>(5, 0)) << "as the caller has it";
  EXPECT_EQ(at::get_num_threads(), 2);
}

TEST(BatchThatFits, HasAsManySamplesAsTheirValuesAllow) {
  EXPECT_EQ(batch_that_fits(3 * 32 * 32), 256);
  EXPECT_EQ(batch_that_fits(3 * 64 * 64), 64);
  EXPECT_EQ(batch_that_fits(10), 256) << "the most";
  EXPECT_EQ(batch_that_fits(int64_t{1} << 40), 1);
}

TEST_F(SideBySide, OneAloneHasOneThreadToo) {
  side_by_side(1, c10::kCPU, [](int64_t) { EXPECT_EQ(at::get_num_threads(), 1); });
  EXPECT_EQ(at::get_num_threads(), 2);
}

TEST_F(SideBySide, RethrowsTheFirstFailure) {
  const auto run = [] {
    side_by_side(3, c10::kCPU, [](int64_t i) {
      if (i > 0) throw ModelError("number " + std::to_string(i));
    });
  };
  try {
    run();
    FAIL();
  } catch (const ModelError& error) {
    EXPECT_STREQ(error.what(), "number 1");
  }
  EXPECT_EQ(at::get_num_threads(), 2);
}

TEST_F(SideBySide, GroupsEndWithTheFeedAndHaveStatesAlone) {
  const auto feed_of = [](int64_t count, bool alone) -> ValueSource {
    return [count, alone, next = int64_t{0}]() mutable -> std::optional<ValueBatch> {
      if (next++ >= count) return {};
      return ValueBatch{EngineValues(static_cast<size_t>(next)),
                        alone ? std::vector{ValueId(0)} : std::vector<ValueId>()};
    };
  };
  const ValueSource plain = feed_of(5, false);
  EXPECT_EQ(next_group(plain, 3).size(), 3U);
  EXPECT_EQ(next_group(plain, 3).size(), 2U);
  EXPECT_TRUE(next_group(plain, 3).empty());
  const ValueSource stream = feed_of(2, true);
  EXPECT_EQ(next_group(stream, 3).size(), 1U);
  EXPECT_EQ(next_group(stream, 3).front().inputs.size(), 2U);
}

TEST_F(SideBySide, StatisticsAreTheSameOnAnyNumberOfCores) {
  test::TextModel model(test::kResidualNet, test::residual_weights());
  const Pruning pruning =
      plan_pruning(model.graph(), from_shorthand({.criterion = "l1", .ratio = 0.5}));
  Needs needs;
  needs.channels = {Measure::kMeanActivation, Measure::kActivationNorm, Measure::kTaylor,
                    Measure::kFisher, Measure::kHessian};
  needs.inputs = {"W2", "W4"};
  const auto on = [&](int cores) {
    torch_io::use_cores(cores);
    return measure(model.graph(), pruning.analysis.facts, pruning.analysis.coupling, needs,
                   batches_of(test::small_data(), 256));
  };
  const Statistics one = on(1);
  const Statistics three = on(3);
  EXPECT_EQ(three.samples, 256);
  for (const auto& [measure, groups] : one.channels) {
    for (const GroupId g : groups.ids()) EXPECT_EQ(three.channels.at(measure)[g], groups[g]);
  }
  for (const auto& [name, moments] : one.inputs) {
    EXPECT_EQ(three.inputs.at(name).second, moments.second);
    EXPECT_EQ(three.inputs.at(name).sum, moments.sum);
  }
}

}  // namespace
}  // namespace parsimony::training
