#include "parsimony/pruners/annealing.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "parsimony/base/errors.h"

namespace parsimony {
namespace {

std::vector<AnnealedShare> groups() { return {{64, 0.9}, {32, 0.9}, {128, 0.5}, {16, 0.9}}; }

double total(const std::vector<double>& shares) {
  double sum = 0;
  for (size_t g = 0; g < shares.size(); ++g) sum += groups()[g].weight * shares[g];
  return sum;
}

/// Layers that are harmed unequally: least where Σ weight·r = 120 at the Lagrangian's solution.
double harm(const std::vector<double>& shares) {
  const std::vector<double> pain = {8, 1, 1, 4};
  double sum = 0;
  for (size_t g = 0; g < shares.size(); ++g) sum += pain[g] * shares[g] * shares[g];
  return sum;
}

TEST(Annealing, BeginsWithTheSameShareForAll) {
  const Annealing search(groups(), 0.4, {});
  for (const double share : search.candidate()) EXPECT_NEAR(share, 0.4, 1e-12);
}

TEST(Annealing, WhereAGroupMayNotTheOthersLoseMore) {
  const Annealing search(groups(), 0.6, {});
  const std::vector<double> shares = search.candidate();
  EXPECT_NEAR(shares[2], 0.5, 1e-12);
  EXPECT_NEAR(shares[0], shares[3], 1e-12);
  EXPECT_NEAR(total(shares), 0.6 * 240, 1e-9);
}

TEST(Annealing, KeepsTheTotalAndTheBounds) {
  Annealing search(groups(), 0.5, {.steps = 500, .seed = 3});
  while (!search.done()) {
    const std::vector<double> shares = search.candidate();
    EXPECT_NEAR(total(shares), 120, 1e-9);
    for (size_t g = 0; g < shares.size(); ++g) {
      EXPECT_GE(shares[g], -1e-12);
      EXPECT_LE(shares[g], groups()[g].most + 1e-12);
    }
    search.tell(harm(shares));
  }
}

// minimise Σ p r² with Σ w r = 120: r = λ w / p, λ = 120 / Σ w²/p = 120 / (512 + 1024 + 16384 +
// 64), r[2] = 0.854 is cut off at 0.5; of the rest λ = 56 / 1600: 0.28, 1.12 is cut off at 0.9;
// then λ = 27.2 / 576: 0.3778, 0.9, 0.5, 0.1889
TEST(Annealing, FindsTheLeast) {
  Annealing search(groups(), 0.5, {.steps = 4000, .seed = 1});
  while (!search.done()) search.tell(harm(search.candidate()));
  const double least = 8 * 0.37778 * 0.37778 + 0.81 + 0.25 + 4 * 0.18889 * 0.18889;
  EXPECT_NEAR(search.state().best_energy, least, 0.005 * least);
  EXPECT_NEAR(harm(search.best()), search.state().best_energy, 1e-12);
}

TEST(Annealing, GoesOnWhereItsStateWasKept) {
  Annealing whole(groups(), 0.5, {.steps = 60, .seed = 9});
  Annealing first(groups(), 0.5, {.steps = 60, .seed = 9});
  for (int i = 0; i < 25; ++i) first.tell(harm(first.candidate()));
  Annealing second(groups(), 0.5, {.steps = 60, .seed = 9});
  second.take_up(first.state());
  while (!second.done()) second.tell(harm(second.candidate()));
  while (!whole.done()) whole.tell(harm(whole.candidate()));
  EXPECT_EQ(second.best(), whole.best());
}

TEST(Annealing, NeverAcceptsTheInfinite) {
  Annealing search(groups(), 0.5, {.steps = 50, .seed = 2});
  search.tell(1);
  const std::vector<double> before = search.state().current;
  while (!search.done()) search.tell(std::numeric_limits<double>::infinity());
  EXPECT_EQ(search.state().current, before);
}

TEST(Annealing, SaysWhatCannotGo) {
  try {
    const Annealing search({{10, 0.5}, {10, 0.3}}, 0.5, {});
    FAIL();
  } catch (const ConfigError& error) {
    EXPECT_STREQ(error.what(), "cannot remove 50% of the channels: their layers allow 40%");
  }
}

}  // namespace
}  // namespace parsimony
