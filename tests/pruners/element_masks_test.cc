#include <gtest/gtest.h>

#include "parsimony/pruners/elements/matrix.h"
#include "parsimony/pruners/settings.h"

namespace parsimony::elements {
namespace {

Keep keep_of(std::initializer_list<std::initializer_list<uint8_t>> rows) { return Keep(rows); }

void expect_equal(const Keep& found, const Keep& expected) {
  ASSERT_EQ(found.rows(), expected.rows());
  ASSERT_EQ(found.cols(), expected.cols());
  EXPECT_TRUE((found == expected).all()) << found.cast<int>() << "\nexpected\n"
                                         << expected.cast<int>();
}

TEST(KeepNOfM, KeepsTheHighestOfEveryGroup) {
  const Matrix scores{{1, 4, 3, 2, 9, 8, 7, 6}, {5, 0, 6, 0, 1, 2, 3, 4}};
  expect_equal(keep_n_of_m(scores, {2, 4}, {8}),
               keep_of({{0, 1, 1, 0, 1, 1, 0, 0}, {1, 0, 1, 0, 0, 0, 1, 1}}));
  expect_equal(keep_n_of_m(scores, {1, 2}, {8}),
               keep_of({{0, 1, 1, 0, 1, 0, 1, 0}, {1, 0, 1, 0, 0, 1, 0, 1}}));
}

TEST(KeepNOfM, OfEqualScoresTheLeftStays) {
  expect_equal(keep_n_of_m(Matrix{{1, 1, 1, 1}}, {2, 4}, {4}), keep_of({{1, 1, 0, 0}}));
}

TEST(KeepNOfM, GroupsEndWithTheirRun) {
  const Matrix scores{{5, 4, 3, 2, 1, 1, 2, 3, 4, 5}};
  // Runs of 5: [5 4 3 2][1], [1 2 3 4][5].
  expect_equal(keep_n_of_m(scores, {2, 4}, {5}), keep_of({{1, 1, 0, 0, 1, 0, 0, 1, 1, 1}}));
  // A rest of 3 keeps 2 as well.
  expect_equal(keep_n_of_m(Matrix{{9, 9, 9, 9, 1, 2, 3}}, {2, 4}, {7}),
               keep_of({{1, 1, 0, 0, 0, 1, 1}}));
}

TEST(KeepOfRows, TakesTheShareOfEveryRow) {
  const Matrix scores{{1, 2, 3, 4, 5}, {50, 40, 30, 20, 10}};
  expect_equal(keep_of_rows(scores, 0.4), keep_of({{0, 0, 1, 1, 1}, {1, 1, 1, 0, 0}}));
  expect_equal(keep_of_rows(scores, 0.19), keep_of({{1, 1, 1, 1, 1}, {1, 1, 1, 1, 1}}));
  expect_equal(keep_of_rows(Matrix{{7, 7, 7, 7}}, 0.5), keep_of({{0, 0, 1, 1}}));
}

TEST(KeepAllBut, TakesTheLowestOfTheWholeMatrix) {
  const Matrix scores{{1, 6, 2}, {2, 5, 2}};
  expect_equal(keep_all_but(scores, 3), keep_of({{0, 1, 0}, {0, 1, 1}}));
  expect_equal(keep_all_but(scores, 0), keep_of({{1, 1, 1}, {1, 1, 1}}));
  expect_equal(keep_all_but(scores, 6), keep_of({{0, 0, 0}, {0, 0, 0}}));
}

TEST(KeepBlocks, TakesBlocksOfLeastNorm) {
  const Matrix weights{{1, 3, 0, 0}, {1, 3, 5, 0}, {2, 2, 0, 1}, {2, 2, 0, 1}};
  // Blocks of 2x1, sums of squares: 2 18 25 0 / 8 8 0 2; two of the lowest four are 0.
  expect_equal(keep_blocks(weights, 2, 1, 0.5, {4}),
               keep_of({{0, 1, 1, 0}, {0, 1, 1, 0}, {1, 1, 0, 0}, {1, 1, 0, 0}}));
  // Blocks of 2x2: 20, 25, 16, 2.
  expect_equal(keep_blocks(weights, 2, 2, 0.5, {4}),
               keep_of({{1, 1, 1, 1}, {1, 1, 1, 1}, {0, 0, 0, 0}, {0, 0, 0, 0}}));
}

TEST(KeepBlocks, BlocksAtTheBorderAreJudgedByTheirMean) {
  // [3 3 0 0] has a sum of 18 and a mean of 4.5; [2 2] at the border 8 and 4.
  const Matrix weights{{3, 3, 0, 0, 2, 2}};
  expect_equal(keep_blocks(weights, 1, 4, 0.5, {6}), keep_of({{1, 1, 1, 1, 0, 0}}));
  expect_equal(keep_blocks(Matrix{{4, 0, 0, 0, 3, 3}}, 1, 4, 0.5, {6}),
               keep_of({{0, 0, 0, 0, 1, 1}}));
}

TEST(WandaScores, AreMagnitudeTimesTheNormOfTheInput) {
  const Eigen::MatrixXd second{{4, 9, 9}, {9, 0, 9}, {9, 9, 25}};
  const Matrix scores = wanda_scores(Matrix{{1, -100, 0.5}, {-3, 1, 1}}, second);
  EXPECT_EQ(scores, (Matrix{{2, 0, 2.5}, {6, 0, 5}}));
}

TEST(FloorOf, IsNotMisledByRounding) {
  EXPECT_EQ(floor_of(0.29, 100), 29);
  EXPECT_EQ(floor_of(0.5, 7), 3);
}

}  // namespace
}  // namespace parsimony::elements
