// The surgeon's losses against those of least squares on every set of channels.
#include "parsimony/pruners/criteria/surgeon.h"

#include <gtest/gtest.h>

#include <Eigen/Cholesky>
#include <algorithm>
#include <numeric>
#include <random>
#include <vector>

#include "parsimony/base/errors.h"
#include "parsimony/pruners/criterion.h"
#include "tests/pruners/network.h"

namespace parsimony {
namespace {

using criteria::ReadingMatrix;
using criteria::removal_losses;
using Eigen::MatrixXd;

constexpr double kNoRidge = 1e-12;

/// Numbers between -1 and 1 that are the same in each run.
MatrixXd numbers(int64_t rows, int64_t columns, unsigned seed) {
  MatrixXd result(rows, columns);
  std::mt19937 draw(seed);
  for (double& x : result.reshaped()) x = static_cast<double>(draw()) / (1U << 31U) - 1;
  return result;
}

struct Layer {
  MatrixXd weights;  ///< [out, in]
  MatrixXd inputs;   ///< [in, samples]
  std::vector<std::vector<int64_t>> columns;

  ReadingMatrix reading() const {
    return {weights.transpose() * weights, inputs * inputs.transpose(), columns};
  }

  /// min ‖W X − Ŵ X_kept‖² / ‖W X‖²
  double loss_without(const std::vector<int>& channels) const {
    std::vector<int64_t> kept;
    for (int c = 0; c < std::ssize(columns); ++c) {
      if (std::ranges::find(channels, c) != channels.end()) continue;
      kept.insert(kept.end(), columns[c].begin(), columns[c].end());
    }
    const MatrixXd target = weights * inputs;
    if (kept.empty()) return 1;
    const MatrixXd left = inputs(kept, Eigen::all);
    const MatrixXd second = left * left.transpose();
    const MatrixXd fitted = second.ldlt().solve(left * target.transpose()).transpose();
    return (target - fitted * left).squaredNorm() / target.squaredNorm();
  }
};

/// Four channels of two columns each.
Layer layer_of(unsigned seed) {
  return {numbers(5, 8, seed), numbers(8, 60, seed + 1), {{0, 4}, {1, 5}, {2, 6}, {3, 7}}};
}

std::vector<int> order_of(const std::vector<double>& losses) {
  std::vector<int> order(losses.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, {}, [&](int c) { return losses[c]; });
  return order;
}

TEST(Surgeon, LossesAreThoseOfLeastSquares) {
  for (const unsigned seed : {1U, 2U, 3U}) {
    const std::vector<Layer> layers = {layer_of(seed), layer_of(seed + 100)};
    const std::vector<double> losses =
        removal_losses({layers[0].reading(), layers[1].reading()}, 4, kNoRidge);
    std::vector<int> gone;
    for (const int c : order_of(losses)) {
      // The next one is that of least loss, given those that are gone.
      std::vector<double> with;
      for (int other = 0; other < 4; ++other) {
        if (std::ranges::find(gone, other) != gone.end()) continue;
        std::vector<int> set = gone;
        set.push_back(other);
        with.push_back(layers[0].loss_without(set) + layers[1].loss_without(set));
      }
      gone.push_back(c);
      const double now = layers[0].loss_without(gone) + layers[1].loss_without(gone);
      EXPECT_NEAR(now, *std::ranges::min_element(with), 1e-9);
      EXPECT_NEAR(losses[c], now, 1e-6);
    }
  }
}

TEST(Surgeon, ChannelsThatOthersCanReplaceCostNothing) {
  Layer layer = layer_of(7);
  layer.columns = {{0}, {1}, {2}, {3}, {4}, {5}, {6}, {7}};
  layer.inputs.row(3) = 2 * layer.inputs.row(1) - layer.inputs.row(6);
  layer.weights.col(3) *= 100;  // by its norm it would stay
  const std::vector<double> losses = removal_losses({layer.reading()}, 8, 1e-9);
  const int first = order_of(losses).front();
  EXPECT_TRUE(first == 1 || first == 3 || first == 6);
  EXPECT_LT(losses[first], 1e-5);
  EXPECT_GT(losses[order_of(losses)[1]], 100 * losses[first]);
}

TEST(Surgeon, LargeGroupsLoseSeveralAtOnce) {
  Layer layer{numbers(40, 600, 3), numbers(600, 900, 4), {}};
  for (int64_t c = 0; c < 600; ++c) layer.columns.push_back({c});
  const std::vector<double> losses = removal_losses({layer.reading()}, 600, 1e-3);
  EXPECT_TRUE(std::ranges::all_of(losses, [](double loss) { return loss > 0; }));
  const std::vector<int> order = order_of(losses);
  const std::vector<int> half(order.begin(), order.begin() + 300);
  const std::vector<int> other(order.begin() + 300, order.end());
  EXPECT_LT(layer.loss_without(half), layer.loss_without(other) * 0.9);
  EXPECT_NEAR(layer.loss_without(half), losses[half.back()], 0.01);
}

TEST(Surgeon, NothingIsKnownOfLayersThatReadZeros) {
  Layer layer = layer_of(1);
  layer.inputs.setZero();
  EXPECT_TRUE(removal_losses({layer.reading()}, 4, 1e-3).empty());
}

/// conv1 [3 of 1], conv2 [2, 3, 1, 2], whose columns are channel by channel.
TEST(Surgeon, ReadsMomentsOfConvolutions) {
  test::Builder b;
  const ValueId x = b.input("x", {1, 1, 1, 4});
  const ValueId w1 = b.weight<float>("w1", {1, 2, 3}, {3, 1, 1, 1}, DType::kFloat32);
  const ValueId w2 =
      b.weight<float>("w2", {1, 1, 0, 1, 5, 5, 2, 0, 1, 1, 5, 4}, {2, 3, 1, 2}, DType::kFloat32);
  b.node("Conv", {b.node("Conv", {x, w1}, "conv1"), w2}, "conv2");
  const Group group =
      test::group_of({test::member(w1, 0, 0, 3), test::member(w2, 1, 1, 3, Role::kIn)}, 3);
  EXPECT_EQ(criteria::surgeon_matrices(b.graph, group), std::vector<std::string>{"w2"});

  Layer layer{MatrixXd(2, 6), numbers(6, 40, 5), {{0, 1}, {2, 3}, {4, 5}}};
  layer.weights << 1, 1, 0, 1, 5, 5, 2, 0, 1, 1, 5, 4;
  Statistics statistics;
  statistics.groups = {"g0"};
  statistics.inputs["w2"] = {40, layer.inputs * layer.inputs.transpose()};
  const Criterion& obs = find_criterion("obs");
  const CriterionOptions options{.seed = 0, .statistics = &statistics};
  const Scores scores = obs.score(b.graph, group, options);
  const std::vector<double> expected = removal_losses({layer.reading()}, 3, 1e-3);
  ASSERT_EQ(scores.size(), 3U);
  for (size_t c = 0; c < 3; ++c) EXPECT_NEAR(scores[c], expected[c], 1e-9);

  // A constant makes up for means.
  Layer centred = layer;
  const Eigen::VectorXd mean = layer.inputs.rowwise().mean();
  centred.inputs.colwise() -= mean;
  statistics.inputs["w2"].sum = 40 * mean;
  const Scores about = obs.score(b.graph, group, options);
  const std::vector<double> without = removal_losses({centred.reading()}, 3, 1e-3);
  for (size_t c = 0; c < 3; ++c) EXPECT_NEAR(about[c], without[c], 1e-9);

  statistics.inputs["w2"].second.resize(5, 5);
  EXPECT_THROW(obs.score(b.graph, group, options), ModelError);
  EXPECT_THROW(obs.score(b.graph, group, {}), ConfigError);
}

}  // namespace
}  // namespace parsimony
