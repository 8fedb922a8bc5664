// What bench prints and writes, from times that nobody measured.
#include "parsimony/report/bench.h"

#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

namespace parsimony {
namespace {

using machine::Ratio;
using machine::Summary;

BenchRow row_of(size_t model, int64_t batch, const Summary& time) {
  BenchRow row;
  row.model = model;
  row.batch = batch;
  row.time = time;
  return row;
}

BenchReport report_of(std::vector<BenchRow> rows) {
  BenchReport report;
  report.models.resize(2);
  report.models[0].label = "big.onnx";
  report.models[1].label = "small.onnx";
  report.models[1].inputs = {{"x", DType::kFloat32, {1, 3}}};
  report.engines = {{"libtorch", "2.15.0", ""}};
  report.rows = std::move(rows);
  report.threads = 2;
  return report;
}

TEST(Bench, PrintsLatencyThroughputAndSpeedup) {
  BenchRow small = row_of(1, 64, {4e-4, 3.5e-4, 5e-4, 900});
  small.speedup = Ratio{2.5, 2.25, 2.75, 30};
  EXPECT_EQ(to_text(report_of({row_of(0, 64, {1e-3, 9.87e-4, 1.5, 1200}), small})),
            "engine    batch  model       median ms  quartiles     samples/s   runs  speedup\n"
            "libtorch     64  big.onnx         1.00  0.987..1,500     64,000  1,200\n"
            "                 small.onnx      0.400  0.350..0.500    160,000    900  2.50x "
            "(2.25..2.75)\n"
            "\n"
            "Measured with 2 threads, libtorch 2.15.0.\n");
}

TEST(Bench, ShowsMemoryWhereAnEngineCountsIt) {
  BenchRow counted = row_of(0, 1, {1e-3, 1e-3, 1e-3, 9});
  counted.peak_bytes = 4'915'200;
  const std::string text = to_text(report_of({counted, row_of(1, 1, {1e-3, 1e-3, 1e-3, 9})}));
  EXPECT_NE(text.find("  memory MB  speedup\n"), std::string::npos) << text;
  EXPECT_NE(text.find("  9       4.92\n"), std::string::npos) << text;
}

TEST(Bench, SaysWhereNobodyCanTell) {
  BenchRow noisy = row_of(1, 1, {1e-3, 1e-3, 1e-3, 9});
  noisy.speedup = Ratio{1.2, 0.875, 1.5, 9};
  EXPECT_NE(to_text(report_of({noisy})).find("no difference beyond noise (0.875..1.500)"),
            std::string::npos);
  noisy.speedup = Ratio{1.2, 0, INFINITY, 4};
  EXPECT_NE(to_text(report_of({noisy})).find("1.20x, too few rounds to tell"), std::string::npos);
}

TEST(Bench, GivesEachReasonOnce) {
  BenchRow never = row_of(0, 1, {});
  never.refused = "no kernel\nand a page of more";
  BenchRow again = never;
  again.batch = 8;
  BenchRow once = row_of(1, 8, {});
  once.refused = "too large";
  const std::string text =
      to_text(report_of({never, row_of(1, 1, {1e-3, 1e-3, 1e-3, 9}), again, once}));
  EXPECT_NE(text.find("\nnote: big.onnx on libtorch: no kernel\n"
                      "note: small.onnx on libtorch, batch 8: too large\nMeasured"),
            std::string::npos)
      << text;
}

TEST(Bench, WritesWhatIsKnown) {
  BenchRow small = row_of(1, 2, {0.5, 0.25, 1, 7});
  small.speedup = Ratio{2, 0, INFINITY, 3};
  BenchRow refused = row_of(0, 2, {});
  refused.refused = "why";
  const auto json = nlohmann::json::parse(to_json(report_of({refused, small})));
  EXPECT_EQ(json.at("rows").at(0).at("refused"), "why");
  EXPECT_FALSE(json.at("rows").at(0).contains("median_seconds"));
  const auto& row = json.at("rows").at(1);
  EXPECT_EQ(row.at("engine"), "libtorch");
  EXPECT_EQ(row.at("model"), 1);
  EXPECT_EQ(row.at("median_seconds"), 0.5);
  EXPECT_EQ(row.at("samples_per_second"), 4);
  EXPECT_TRUE(row.at("speedup").at("high").is_null()) << "JSON has no infinity";
  EXPECT_EQ(json.at("models").at(1).at("inputs").at(0).at("type"), "float32");
}

}  // namespace
}  // namespace parsimony
