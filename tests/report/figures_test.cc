#include "parsimony/report/figures.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "parsimony/base/errors.h"
#include "parsimony/report/sweep/summary.h"
#include "tests/report/sample_sweep.h"
#include "tests/support/message_of.h"

namespace parsimony::test {
namespace {

std::string prune_report(int params, const std::string& metric, const std::string& holds) {
  return R"({"parsimony_report": 1, "result": {"path": "small.onnx", "bytes": 2000},
      "source": {"bytes": 4000}, "params": {"before": 1000, "after": )" +
         std::to_string(params) + R"(}, "macs": {"before": 9000, "after": 3000},
      "metrics": [{"command": "map.py a|b", "before": 0.5, "after": )" +
         metric + R"(, "lower_is_better": false}],
      "proof": {"ran": true, "holds": )" +
         holds + "}}";
}

ReportFigures figures(const std::string& json) { return read_figures(json, "r.json"); }

TEST(Figures, AreATable) {
  EXPECT_EQ(to_markdown(figures(prune_report(250, "0.45", "true")), nullptr),
            "### small.onnx\n\n"
            "| | dense | pruned | of dense |\n"
            "|---|--:|--:|--:|\n"
            "| parameters | 1,000 | 250 | 25.0% |\n"
            "| multiply-adds | 9,000 | 3,000 | 33.3% |\n"
            "| bytes of the file | 4,000 | 2,000 | 50.0% |\n"
            "| map.py a\\|b | 0.5 | 0.45 | 90.0% |\n"
            "| proof | – | holds |  |\n");
}

TEST(Figures, SayWhatHasChanged) {
  const ReportFigures now = figures(prune_report(300, "0.44", "true"));
  const ReportFigures before = figures(prune_report(250, "0.45", "true"));
  const std::string table = to_markdown(now, &before);
  EXPECT_NE(table.find("| parameters | 1,000 | 300 | 30.0% | 250 | +20.0% |"), std::string::npos)
      << table;
  EXPECT_NE(table.find("| multiply-adds | 9,000 | 3,000 | 33.3% | 3,000 | = |"), std::string::npos)
      << table;
}

TEST(Figures, WorseIsWhatIsBeyondTheAllowance) {
  const ReportFigures before = figures(prune_report(250, "0.45", "true"));
  const auto worse = [&](const std::string& json, double allowed) {
    return what_is_worse(figures(json), before, allowed);
  };
  EXPECT_EQ(worse(prune_report(250, "0.45", "true"), 0), std::vector<std::string>{});
  EXPECT_EQ(worse(prune_report(252, "0.446", "true"), 0.01), std::vector<std::string>{});
  EXPECT_EQ(worse(prune_report(253, "0.44", "true"), 0.01),
            (std::vector<std::string>{"parameters: 253, was 250", "map.py a|b: 0.44, was 0.45"}));
  EXPECT_EQ(
      worse(prune_report(200, "null", "false"), 0.01),
      (std::vector<std::string>{"map.py a|b: –, was 0.45", "proof: **does not hold**, was holds"}));
  ReportFigures without = before;
  without.figures.erase(without.figures.begin());
  EXPECT_EQ(what_is_worse(without, before, 0),
            std::vector<std::string>{"parameters: missing, was 250"});
}

TEST(Figures, OfASweepAreThoseOfItsSettings) {
  const SweepReport report = summarise({sample_sweep(), {}});
  const ReportFigures found = figures(to_json(report));
  EXPECT_EQ(found.figures.size(), 3 * report.settings.size());
  EXPECT_EQ(what_is_worse(found, found, 0), std::vector<std::string>{});
}

TEST(Figures, OfAnythingElseAreRefused) {
  EXPECT_EQ(message_of<ModelError>([] { figures("{}"); }),
            "r.json: expected the JSON report of prune (--report), or of a sweep");
  EXPECT_EQ(message_of<ModelError>([] { figures(R"({"parsimony_report": 1})"); }),
            "r.json: lacks \"result\"");
}

}  // namespace
}  // namespace parsimony::test
