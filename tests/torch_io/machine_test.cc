#include "parsimony/torch_io/machine.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include "parsimony/base/errors.h"

namespace parsimony::torch_io {
namespace {

/// The process's number of threads comes back.
class Threads : public testing::Test {
 protected:
  ~Threads() override { at::set_num_threads(before_); }

 private:
  int before_ = at::get_num_threads();
};

TEST_F(Threads, TheNumberThatIsAskedForIsSet) {
  EXPECT_EQ(choose_threads(3), 3);
  EXPECT_EQ(at::get_num_threads(), 3);
  EXPECT_EQ(choose_threads(1), 1);
  EXPECT_EQ(at::get_num_threads(), 1);
}

TEST_F(Threads, ResultsAreOfOneThreadHoweverManyCoresThereAre) {
  at::set_num_threads(3);
  EXPECT_EQ(use_cores(2), 2);
  EXPECT_EQ(at::get_num_threads(), 1);
  EXPECT_EQ(cores_to_use(), 2);
  EXPECT_EQ(use_cores(), machine::these_cores().usable());
  EXPECT_EQ(at::get_num_threads(), 1);
  EXPECT_THROW(use_cores(0), ConfigError);
}

TEST_F(Threads, NoneIsAnError) {
  EXPECT_THROW(choose_threads(0), ConfigError);
  EXPECT_THROW(choose_threads(-2), ConfigError);
}

TEST_F(Threads, AMeasuredNumberHoldsForTheProcess) {
  const int first = choose_threads();
  EXPECT_GE(first, 1);
  EXPECT_LE(first, machine::these_cores().usable());
  at::set_num_threads(first + 1);
  EXPECT_EQ(choose_threads(), first);
  EXPECT_EQ(at::get_num_threads(), first);
}

TEST_F(Threads, TimingLeavesTheNumber) {
  at::set_num_threads(1);
  const auto times = time_threads(2);
  EXPECT_EQ(at::get_num_threads(), 1);
  ASSERT_FALSE(times.empty());
  EXPECT_EQ(times.front().threads, 1);
}

TEST(BestThreads, AreTheFewestAmongEqual) {
  EXPECT_EQ(best_of({}), 1);
  EXPECT_EQ(best_of({{1, 1.0}, {2, 0.6}, {4, 0.59}}), 2);
  EXPECT_EQ(best_of({{1, 1.0}, {2, 2.0}, {4, 0.5}}), 4);
}

TEST(Examine, FindsAndMeasures) {
  const int threads = at::get_num_threads();
  const machine::MachineReport report = examine();
  EXPECT_EQ(at::get_num_threads(), threads);
  ASSERT_TRUE(report.torch);
  EXPECT_EQ(report.torch->aten_threads, threads);
  EXPECT_NE(report.torch->capability, "unknown");
  EXPECT_GT(report.torch->product_gflops, 0);
  EXPECT_GT(report.torch->seconds_per_fault, 0);
}

TEST(Examine, LeavesTheRandomGenerator) {
  at::manual_seed(7);
  const at::Tensor requested = at::rand({4});
  at::manual_seed(7);
  TrainingStep step({.batch = 2});
  step.run();
  EXPECT_TRUE(at::equal(at::rand({4}), requested));
}

}  // namespace
}  // namespace parsimony::torch_io
