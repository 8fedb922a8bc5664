// Built-in metrics on answers whose values are known.
#include "parsimony/api/output_metrics.h"

#include <gtest/gtest.h>

#include <cmath>

#include "parsimony/base/errors.h"
#include "parsimony/data/dataset.h"
#include "tests/support/arrays.h"

namespace parsimony::test {
namespace {

double value(std::string_view metric, const Predictions& predictions) {
  return find_output_metric(metric)->value(predictions);
}

TEST(OutputMetrics, OfSignals) {
  const Predictions predictions{{2}, {{3, 0}, {0, 5}}, {{4, 0}, {0, 5}}, {}};
  EXPECT_DOUBLE_EQ(value("mse", predictions), 0.25);
  // Peak 5: one sample has 10 log10(25 · 2 / 1), the other is exact.
  EXPECT_NEAR(value("psnr", predictions), (10 * std::log10(50.0) + 200) / 2, 1e-9);
  EXPECT_NEAR(value("snr", predictions), (10 * std::log10(16.0) + 200) / 2, 1e-9);
  EXPECT_DOUBLE_EQ(value("cosine", predictions), 1);
  EXPECT_DOUBLE_EQ(value("si-sdr", predictions), 200) << "a scale is no distortion";
  const Predictions turned{{2}, {{1, 1}}, {{1, 0}}, {}};
  EXPECT_NEAR(value("si-sdr", turned), 0, 1e-9) << "as much distortion as signal";
  EXPECT_NEAR(value("cosine", turned), std::sqrt(0.5), 1e-12);
}

TEST(OutputMetrics, OfRows) {
  Predictions predictions{
      {3}, {{1, 2, 0}, {5, 4, 3}, {0, 0, 1}}, {{0, 9, 1}, {1, 2, 0}, {0, 0, 7}}, {}};
  EXPECT_DOUBLE_EQ(value("agreement", predictions), 2.0 / 3);
  EXPECT_DOUBLE_EQ(value("top5", predictions), 1);
  // Class 0 is seen by the small network alone, class 1 once by both, class 2 by both.
  EXPECT_DOUBLE_EQ(value("iou", predictions), (0 + 0.5 + 1) / 3);
  predictions.labels = {1, 0, 9};
  EXPECT_DOUBLE_EQ(value("accuracy", predictions), 2.0 / 3)
      << "a label beyond the classes is missed";
}

TEST(OutputMetrics, OfTokensAndPixels) {
  const Predictions pixels{{2, 1, 3}, {{1, 0, 1, 0, 1, 0}}, {{1, 0, 0, 0, 1, 1}}, {}};
  EXPECT_DOUBLE_EQ(value("agreement", pixels), 2.0 / 3) << "classes along the first axis";
  const Predictions tokens{{3, 2}, {{1, 0, 1, 0, 1, 0}}, {{1, 0, 0, 1, 1, 0}}, {0, 0, 1}};
  EXPECT_DOUBLE_EQ(value("agreement", tokens), 2.0 / 3) << "classes along the last axis";
  EXPECT_DOUBLE_EQ(value("accuracy", tokens), 2.0 / 3) << "a label for each token";
}

TEST(OutputMetrics, OfLanguageModels) {
  // The classes' logits 0 and log 3: a label has the probability 1/4 or 3/4.
  const double three = std::log(3.0);
  const std::vector<std::vector<double>> logits = {{0, three, three, 0}};
  EXPECT_NEAR(value("perplexity", {{2, 2}, logits, logits, {1, 1}}),
              std::exp(-(std::log(0.75) + std::log(0.25)) / 2), 1e-12);
  const std::vector<std::vector<double>> shares = {{0.25, 0.75, 0.75, 0.25}};
  EXPECT_NEAR(value("perplexity", {{2, 2}, shares, shares, {1, 1}}),
              std::exp(-(std::log(0.75) + std::log(0.25)) / 2), 1e-12)
      << "probabilities as they are";
  EXPECT_NEAR(value("perplexity", {{2}, {{0, three}}, {{0, three}}, {1}}), 4.0 / 3, 1e-12);
  const Predictions half{{2, 2}, logits, logits, {1, kNoLabel}};
  EXPECT_NEAR(value("perplexity", half), 4.0 / 3, 1e-12);
  EXPECT_DOUBLE_EQ(value("accuracy", half), 1);
  EXPECT_THROW(value("perplexity", {{2}, {{0, 1}}, {{0, 1}}, {2}}), ModelError);
}

TEST(OutputMetrics, OfDetectors) {
  // Rows: centre, size, confidence of an object, two classes.
  const std::vector<double> expected = {10, 10, 4, 4, 0.9, 0.9, 0.1,  //
                                        11, 10, 4, 4, 0.8, 0.9, 0.1,  // lies over the first
                                        30, 30, 8, 8, 0.9, 0.1, 0.8,  //
                                        50, 50, 8, 8, 0.3, 0.5, 0.5,  // not sure enough
                                        70, 70, 8, 8, 0.9, 0.9, 0.1,  //
                                        0,  0,  0, 0, 0,   0,   0,    //
                                        0,  0,  0, 0, 0,   0,   0,    //
                                        0,  0,  0, 0, 0,   0,   0};
  std::vector<double> found = expected;
  EXPECT_DOUBLE_EQ(value("boxes", {{8, 7}, {found}, {expected}, {}}), 1);
  found[14] = 32;  // overlaps by 6 · 8 of 80
  EXPECT_DOUBLE_EQ(value("boxes", {{8, 7}, {found}, {expected}, {}}), 1);
  found[28] = 76;  // by 2 · 8 of 112
  EXPECT_DOUBLE_EQ(value("boxes", {{8, 7}, {found}, {expected}, {}}), 2.0 / 3);
  std::swap(found[19], found[20]);  // another class
  EXPECT_DOUBLE_EQ(value("boxes", {{8, 7}, {found}, {expected}, {}}), 1.0 / 3);
  // Columns, without the confidence of an object.
  std::vector<double> columns(6 * 8, 0);
  for (size_t i = 0; i < 4; ++i) columns[i * 8] = expected[i];
  columns[4 * 8] = 0.9;
  EXPECT_DOUBLE_EQ(value("boxes", {{6, 8}, {columns}, {columns}, {}}), 1);
  EXPECT_DOUBLE_EQ(value("boxes", {{6, 8}, {std::vector<double>(48, 0)}, {columns}, {}}), 0);
  EXPECT_THROW(value("boxes", {{3}, {{1, 2, 3}}, {{1, 2, 3}}, {}}), ModelError);
}

TEST(OutputMetrics, OfEmbeddings) {
  const std::vector<std::vector<double>> expected = {{1, 0}, {1, 0.1}, {0, 1}, {0.1, 1}};
  EXPECT_DOUBLE_EQ(value("recall", {{2}, expected, expected, {}}), 1);
  const std::vector<std::vector<double>> crossed = {{1, 0}, {0, 1}, {0.1, 1}, {1, 0.1}};
  EXPECT_DOUBLE_EQ(value("recall", {{2}, crossed, expected, {}}), 0);
}

TEST(OutputMetrics, TakeTheOutputThatIsNamed) {
  const Outputs expected = {{tensor("ids", {1, 1}, {7}), tensor("y", {1, 2}, {1, 2})},
                            {tensor("ids", {2, 1}, {8, 9}), tensor("y", {2, 2}, {3, 4, 5, 6})}};
  const Predictions first = predictions_of(expected, expected, "", {});
  EXPECT_EQ(first.expected, (std::vector<std::vector<double>>{{7}, {8}, {9}}));
  const Predictions named = predictions_of(expected, expected, "y", {1, 2, 3});
  EXPECT_EQ(named.dims, (Shape{2}));
  EXPECT_EQ(named.found, (std::vector<std::vector<double>>{{1, 2}, {3, 4}, {5, 6}}));
  EXPECT_THROW(predictions_of(expected, expected, "z", {}), ConfigError);
  Outputs other = expected;
  other[1][1].dims = {1, 4};
  EXPECT_THROW(predictions_of(other, expected, "y", {}), ModelError);
  Outputs broken = expected;
  broken[0][1] = tensor("y", {1, 2}, {1, std::nanf("")});
  const Predictions predictions = predictions_of(broken, expected, "y", {1, 1, 1});
  EXPECT_FALSE(all_finite(predictions));
  EXPECT_TRUE(all_finite(predictions_of(expected, expected, "y", {})));
  EXPECT_DOUBLE_EQ(value("accuracy", predictions), 2.0 / 3) << "NaN is no class";
}

}  // namespace
}  // namespace parsimony::test
