#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>

#include "parsimony/base/errors.h"
#include "parsimony/report/html/page.h"
#include "parsimony/report/sweep/summary.h"
#include "parsimony/report/text.h"
#include "tests/report/sample_sweep.h"

namespace parsimony::test {
namespace {

using Json = nlohmann::json;

SweepReport report_of(std::vector<LedgerPoint> points) {
  return summarise({std::move(points), {}});
}

const SweepSetting& setting_at(const SweepReport& report, const std::string& series,
                               double sparsity) {
  for (const SweepSetting& setting : report.settings) {
    if (setting.series == series && setting.sparsity == sparsity) return setting;
  }
  throw std::runtime_error("no such setting: " + series);
}

TEST(SweepFormat, Numbers) {
  EXPECT_EQ(sparsity_text(0.5), "50%");
  EXPECT_EQ(sparsity_text(0.125), "12.5%");
  EXPECT_EQ(sparsity_text(0.29), "29%");
  EXPECT_EQ(accuracy_text(0.4710), "47.10%");
  EXPECT_EQ(change_text(-0.0118), "−1.18 points");
  EXPECT_EQ(change_text(0.002), "+0.20 points");
  EXPECT_EQ(change_text(-0.00001), "0.00 points");
  EXPECT_EQ(ratio_text(2122186, 1059306), "2.00×");
  EXPECT_EQ(ratio_text(1, 0), "–");
  EXPECT_EQ(seconds_text(122.4), "122 s");
  EXPECT_EQ(seconds_text(9.123), "9.12 s");
  EXPECT_EQ(bytes_text(8489924), "8.49 MB");
  EXPECT_EQ(bytes_text(999), "999 B");
  EXPECT_EQ(macs_text(777e3), "777 k");
}

TEST(SweepReport, ComparesWithTheDenseNetworkOfTheSameSeed) {
  const SweepReport report = report_of(sample_sweep());
  ASSERT_EQ(report.rows.size(), 33U);
  for (const SweepRow& row : report.rows) {
    if (row.point.sparsity == 0) {
      EXPECT_EQ(row.change, 0);
      continue;
    }
    ASSERT_TRUE(row.dense);
    const LedgerPoint& dense = report.rows[*row.dense].point;
    EXPECT_EQ(dense.seed, row.point.seed);
    EXPECT_EQ(row.reference, dense.after);
    EXPECT_DOUBLE_EQ(*row.train_speedup, dense.train.total() / row.point.train.total());
    EXPECT_DOUBLE_EQ(row.change,
                     static_cast<double>(row.point.after.correct - dense.after.correct) / 10000);
  }
  EXPECT_TRUE(report.notes.empty());
}

TEST(SweepReport, WithoutADenseNetworkThereIsItsOwnBefore) {
  const SweepReport report = report_of({sample_point("l1", 0.5, 0), sample_point("l1", 0, 1)});
  const SweepRow& row = report.rows[1];
  ASSERT_EQ(row.point.sparsity, 0.5);
  EXPECT_FALSE(row.dense);
  EXPECT_FALSE(row.train_speedup);
  EXPECT_EQ(row.reference, row.point.before);
  ASSERT_EQ(report.notes.size(), 1U);
  EXPECT_EQ(
      report.notes[0].find("There is no dense network of the same seed for 1 of 1 pruned point:"),
      0U)
      << report.notes[0];
}

TEST(SweepReport, ChangesComeFromCounts) {
  // 2 of 3 and 667 of 1000 are both 66.7% when rounded.
  LedgerPoint dense = sample_point("l1", 0, 0);
  LedgerPoint small = sample_point("l1", 0.5, 0);
  dense.after = {2, 3};
  small.after = {667, 1000};
  const SweepReport report = report_of({dense, small});
  EXPECT_DOUBLE_EQ(report.rows[1].change, 667.0 / 1000 - 2.0 / 3);
  EXPECT_EQ(Json::parse(to_json(report))["points"][1]["compared"]["total"], 3);
}

TEST(SweepReport, SeedsMakeASpread) {
  std::vector<LedgerPoint> points;
  for (const int64_t correct : {40, 50, 66}) {
    points.push_back(sample_point("l1", 0.5, points.size()));
    points.back().after = {correct, 100};
  }
  const SweepReport report = report_of(points);
  const SweepSetting& setting = setting_at(report, "l1", 0.5);
  EXPECT_DOUBLE_EQ(setting.accuracy.mean, 0.52);
  EXPECT_DOUBLE_EQ(setting.accuracy.low, 0.40);
  EXPECT_DOUBLE_EQ(setting.accuracy.high, 0.66);
}

LedgerPoint timed(double sparsity, double seconds, int64_t correct) {
  LedgerPoint point = sample_point("l1", sparsity, 0);
  point.train = {0, seconds, 0, 0, 0};
  point.after = {correct, 100};
  return point;
}

TEST(SweepReport, TheFrontHasWhatNothingBeatsInBoth) {
  const SweepReport report = report_of({timed(0, 100, 90), timed(0.2, 80, 91), timed(0.4, 60, 80),
                                        timed(0.6, 70, 79), timed(0.8, 60, 80)});
  std::map<double, bool> front;
  for (const SweepSetting& setting : report.settings) front[setting.sparsity] = setting.front;
  // Equal ones do not beat each other.
  const std::map<double, bool> requested{
      {0, false}, {0.2, true}, {0.4, true}, {0.6, false}, {0.8, true}};
  EXPECT_EQ(front, requested);
}

TEST(SweepReport, TheHeadlineIsTheSmallestWithinAPoint) {
  const SweepReport report =
      report_of({timed(0, 100, 90), timed(0.2, 80, 90), timed(0.4, 60, 89), timed(0.6, 40, 88)});
  EXPECT_EQ(report.rows[report.selected].point.sparsity, 0.4);
  EXPECT_EQ(report.selected_name, "l1 at 40%, seed 0");
}

TEST(SweepReport, TheHeadlineIsTheMiddleOneWhereAllLoseMore) {
  const SweepReport report =
      report_of({timed(0, 100, 90), timed(0.2, 80, 70), timed(0.4, 60, 80), timed(0.8, 40, 60)});
  EXPECT_EQ(report.rows[report.selected].point.sparsity, 0.4);
  EXPECT_NE(report.selected_because.find("nearest to 50%"), std::string::npos);
}

TEST(SweepReport, TheHeadlineOfTheKnownExperiment) {
  const SweepReport report = report_of({sample_point("l1", 0, 0), sample_point("l1", 0.5, 0)});
  ASSERT_EQ(report.headline.size(), 6U);
  EXPECT_EQ(report.headline[0].before, "2,122,186");
  EXPECT_EQ(report.headline[0].after, "1,059,306");
  EXPECT_EQ(report.headline[0].ratio, "2.00×");
  EXPECT_EQ(report.headline[4].what, "training time");
  EXPECT_EQ(report.headline[5].what, "accuracy");
}

TEST(SweepReport, APointThatWasNotEvaluated) {
  LedgerPoint point = sample_point("l1", 0.5, 1);
  point.after = {0, 0};
  const SweepReport report =
      report_of({sample_point("l1", 0, 1), point, sample_point("l1", 0.5, 0)});
  EXPECT_TRUE(Json::parse(to_json(report))["points"][2]["compared"]["change"].is_null());
  EXPECT_NE(to_html(report).find("0 of 0"), std::string::npos);
}

TEST(SweepReport, NothingPruned) {
  const SweepReport report = report_of({sample_point("l1", 0, 0)});
  EXPECT_EQ(report.selected_name, "dense");
  EXPECT_EQ(report.headline[5].before, "–");
  EXPECT_THROW(report_of({}), ModelError);
}

TEST(SweepReport, TheOrderOfFinishingDoesNotShow) {
  std::vector<LedgerPoint> points = sample_sweep();
  const SweepReport one = report_of(points);
  std::reverse(points.begin(), points.end());
  const SweepReport other = report_of(points);
  EXPECT_EQ(to_json(one), to_json(other));
  EXPECT_EQ(to_csv(one), to_csv(other));
  EXPECT_EQ(to_markdown(one), to_markdown(other));
  EXPECT_EQ(to_html(one), to_html(other));
}

TEST(SweepReport, RunsThatDifferAreNotCompared) {
  std::vector<LedgerPoint> points{sample_point("l1", 0, 0), sample_point("l1", 0.5, 0)};
  points[1].config = R"({"epochs": 20})";
  const SweepReport report = report_of(points);
  EXPECT_EQ(report.settings.size(), 2U);
  for (const SweepRow& row : report.rows) EXPECT_FALSE(row.dense);
  EXPECT_NE(report.rows[0].series, report.rows[1].series);
  EXPECT_FALSE(report.notes.empty());
}

TEST(SweepReport, AListOfPointsInTheConfigIsNoDifference) {
  std::vector<LedgerPoint> points{sample_point("l1", 0, 0), sample_point("l1", 0.5, 0)};
  points[0].config = R"({"epochs": 10, "sparsities": [0, 0.2]})";
  points[1].config = R"({"epochs": 10, "sparsities": [0.5], "seeds": [0]})";
  EXPECT_TRUE(report_of(points).rows[1].dense);
  points[0].config = R"({"train": {"epochs": 10, "seed": 1}})";
  points[1].config = R"({"train": {"epochs": 10, "seed": 2}})";
  EXPECT_TRUE(report_of(points).rows[1].dense);
}

TEST(SweepReport, OtherMachinesAreNoted) {
  std::vector<LedgerPoint> points{sample_point("l1", 0, 0), sample_point("l1", 0.5, 0)};
  points[1].machine.threads = 2;
  const SweepReport report = report_of(points);
  ASSERT_EQ(report.notes.size(), 1U);
  EXPECT_NE(report.notes[0].find("2 machines"), std::string::npos);
}

TEST(SweepReport, AProofThatFailsIsSaid) {
  LedgerPoint point = sample_point("l1", 0.5, 0);
  point.proof->difference = 0.1;
  const SweepReport report = report_of({sample_point("l1", 0, 0), point});
  ASSERT_EQ(report.notes.size(), 1U);
  EXPECT_NE(report.notes[0].find("does not hold"), std::string::npos);
  EXPECT_NE(to_html(report).find("verdict bad"), std::string::npos);
  EXPECT_NE(to_markdown(report).find("**Differs**"), std::string::npos);
}

size_t columns(const std::string& line) {
  size_t count = 1;
  bool quoted = false;
  for (const char c : line) {
    if (c == '"') quoted = !quoted;
    if (c == ',' && !quoted) ++count;
  }
  return count;
}

TEST(SweepReport, MetricsAreColumns) {
  LedgerContent content;
  for (LedgerPoint point : sample_sweep()) {
    const double value = point.sparsity == 0 ? 40 : 40 - static_cast<double>(point.seed);
    point.metrics.push_back({"map.py {model}", false, value, "", "", ""});
    if (point.seed == 0) {
      point.metrics.push_back(
          {"wer {model}", true, std::numeric_limits<double>::quiet_NaN(), "exit code 1", "", ""});
    }
    content.points.push_back(point);
  }
  const SweepReport report = summarise(content);
  EXPECT_EQ(report.metrics, (std::vector<std::string>{"map.py {model}", "wer {model}"}));
  const SweepSetting& pruned = report.settings.back();
  ASSERT_TRUE(pruned.metrics[0].has_value());
  EXPECT_EQ(pruned.metrics[0]->mean, 39);
  EXPECT_EQ(pruned.metrics[0]->low, 38);
  EXPECT_FALSE(pruned.metrics[1].has_value()) << "no seed has one";
  const auto line = std::ranges::find(report.headline, "map.py {model}", &Headline::what);
  ASSERT_NE(line, report.headline.end());
  EXPECT_EQ(line->before, "40");
  EXPECT_NE(to_markdown(report).find("| map.py \\{model\\} | wer \\{model\\} |"),
            std::string::npos);
  EXPECT_NE(to_csv(report).find(",version,map.py {model},wer {model}\r\n"), std::string::npos);
}

TEST(SweepReport, CsvHasALineForEachPoint) {
  LedgerPoint point = sample_point("l1", 0.5, 0);
  point.machine.processor = "Xeon \"Gold\", 2 sockets";
  const std::string text = to_csv(report_of({point}));
  const size_t end = text.find("\r\n");
  const std::string line = text.substr(end + 2, text.find("\r\n", end + 2) - end - 2);
  EXPECT_EQ(columns(text.substr(0, end)), columns(line));
  EXPECT_NE(line.find("\"Xeon \"\"Gold\"\", 2 sockets\""), std::string::npos);
  EXPECT_NE(line.find("1059306"), std::string::npos);
}

/// What the page holds beside its own scripts, style and data.
std::string markup_of(const std::string& page) {
  std::string text;
  for (size_t at = 0; at < page.size();) {
    const size_t begin = page.find("<script", at);
    text += page.substr(at, begin - at);
    if (begin == std::string::npos) break;
    at = page.find("</script>", begin) + 9;
  }
  return text;
}

TEST(SweepPage, NothingInTheLedgerIsMarkup) {
  const std::string page = to_html(report_of(hostile_sweep()));
  EXPECT_EQ(markup_of(page).find("<img"), std::string::npos);
  if (const size_t data = page.find("id=\"chart-data\">"); data != std::string::npos) {
    const size_t begin = page.find('>', data) + 1;
    EXPECT_EQ(page.find('<', begin), page.find("</script>", begin));
  }
  // Its own three and no more.
  size_t scripts = 0;
  for (size_t at = page.find("</script>"); at != std::string::npos; ++scripts) {
    at = page.find("</script>", at + 1);
  }
  EXPECT_EQ(scripts, has_charts() ? 3U : 0U);
  EXPECT_NE(markup_of(page).find("&lt;img src=x"), std::string::npos);
  const std::string text = to_markdown(report_of(hostile_sweep()));
  for (size_t at = text.find("<img"); at != std::string::npos; at = text.find("<img", at + 1)) {
    const size_t line = text.rfind('\n', at) + 1;
    const bool is_code = text.compare(line, 4, "    ") == 0;
    EXPECT_TRUE(is_code || text[at - 1] == '\\') << text.substr(line, at - line + 8);
  }
}

TEST(SweepPage, FetchesNothing) {
  const std::string page = markup_of(to_html(report_of(sample_sweep())));
  EXPECT_NE(page.find("Content-Security-Policy"), std::string::npos);
  EXPECT_NE(page.find("default-src 'none'"), std::string::npos);
  EXPECT_EQ(page.find("http"), page.find("http-equiv"));
  EXPECT_EQ(page.find("http", page.find("http-equiv") + 1), std::string::npos);
}

TEST(SweepPage, EachChartHasItsTable) {
  const std::string page = markup_of(to_html(report_of(sample_sweep())));
  for (const char* caption :
       {"Accuracy and training time", "Accuracy and sparsity", "Training speedup",
        "Training time by phase", "Channels of each layer"}) {
    EXPECT_NE(page.find("<caption>" + std::string(caption) + "</caption>"), std::string::npos)
        << caption;
  }
}

}  // namespace
}  // namespace parsimony::test
