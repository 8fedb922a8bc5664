#include "parsimony/report/text.h"

#include <gtest/gtest.h>

#include <limits>

namespace parsimony {
namespace {

TEST(ReportText, Thousands) {
  EXPECT_EQ(with_thousands(0), "0");
  EXPECT_EQ(with_thousands(999), "999");
  EXPECT_EQ(with_thousands(1000), "1,000");
  EXPECT_EQ(with_thousands(-123456), "-123,456");
  EXPECT_EQ(with_thousands(std::numeric_limits<int64_t>::max()), "9,223,372,036,854,775,807");
}

TEST(ReportText, Percent) {
  EXPECT_EQ(percent(1, 4), "25.0%");
  EXPECT_EQ(percent(0, 0), "-");
}

TEST(ReportText, Counted) {
  EXPECT_EQ(counted(1, "group"), "1 group");
  EXPECT_EQ(counted(2048, "channel"), "2,048 channels");
}

TEST(ReportText, Duration) {
  EXPECT_EQ(duration(0.00012), "0.12 ms");
  EXPECT_EQ(duration(0.034), "34 ms");
  EXPECT_EQ(duration(1.5), "1.50 s");
}

TEST(ReportText, ControlCharactersAreShownAsQuestionMarks) {
  EXPECT_EQ(printable("a\033[1m\nb\x7f"), "a?[1m?b?");
  EXPECT_EQ(printable("über"), "über");
}

TEST(ReportText, Listed) {
  EXPECT_EQ(listed({}, 2), "");
  EXPECT_EQ(listed({"a", "b"}, 2), "a, b");
  EXPECT_EQ(listed({"a", "b", "c", "d"}, 2), "a, b and 2 more");
}

TEST(ReportText, Wrapped) {
  EXPECT_EQ(wrapped({"alpha", "beta", "gamma"}, 4, 2, 16), "alpha, beta,\n  gamma");
  EXPECT_EQ(wrapped({"longer than the line"}, 0, 0, 5), "longer than the line");
}

TEST(ReportText, ColumnsAreAligned) {
  using enum Table::Align;
  Table table({"node", "params"}, {kLeft, kRight});
  table.add({"conv1", "9,408"});
  table.rule();
  table.add({"a", "1"});
  EXPECT_EQ(table.text(1),
            " node   params\n"
            " conv1   9,408\n"
            " -----  ------\n"
            " a           1\n");
}

}  // namespace
}  // namespace parsimony
