#include "parsimony/configs/latency_file.h"

#include <gtest/gtest.h>

#include <string>

#include "parsimony/base/errors.h"

namespace parsimony {
namespace {

LatencyFile sample() {
  LatencyFile file{"AMD EPYC", "libtorch 2.15.0", 2, {}};
  file.tables["a key \"1x3\""] = {"Conv 8x3x3x3, Relu", {1, 8}, {1}, {1.5e-5, 3e-5}, 1763683200};
  file.tables["b"] = {"Gemm", {1}, {1}, {0}, 7};
  return file;
}

std::string message_of(const std::string& text, const LatencyFile& expected) {
  try {
    check_origin(parse_latency_file(text, "t.json"), expected, "t.json");
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "(no error)";
}

std::string replaced(std::string text, const std::string& what, const std::string& with) {
  const size_t at = text.find(what);
  EXPECT_NE(at, std::string::npos) << what;
  return text.replace(at, what.size(), with);
}

TEST(LatencyFile, ComesBackAsItWasWritten) {
  const LatencyFile file = sample();
  const LatencyFile back = parse_latency_file(to_json(file), "t.json");
  EXPECT_EQ(back.tables, file.tables);
  EXPECT_EQ(back.machine, file.machine);
  check_origin(back, file, "t.json");
}

TEST(LatencyFile, IsOfOneMachineEngineAndNumberOfThreads) {
  const std::string text = to_json(sample());
  LatencyFile expected = sample();
  expected.engine = "onnxruntime 1.20.1";
  EXPECT_EQ(message_of(text, expected),
            "t.json: \"engine\": found \"libtorch 2.15.0\", expected \"onnxruntime 1.20.1\"; times "
            "hold for one machine, engine and number of threads: name another file");
  expected = sample();
  expected.threads = 1;
  EXPECT_NE(message_of(text, expected).find("\"threads\": found 2, expected 1"), std::string::npos);
  EXPECT_NE(message_of("{}", sample()).find("\"parsimony_latency\": found null, expected 1"),
            std::string::npos);
}

TEST(LatencyFile, RefusesTablesThatDoNotFit) {
  const std::string text = to_json(sample());
  EXPECT_EQ(message_of(replaced(text, "1.5e-05", "-1.0"), sample()),
            "t.json: tables[0].seconds[0]: found -1.0, expected a number in [0, ∞)");
  EXPECT_EQ(message_of(replaced(text, "\"what\"", "\"who\""), sample()),
            "t.json: tables[0]: lacks \"what\"");
  EXPECT_EQ(
      message_of(replaced(text, "1.5e-05", "1.5e-05, 2.0"), sample()),
      "t.json: tables[0]: expected ascending widths x and y, and a time for each pair of them");
  EXPECT_NE(message_of("[]", sample()).find("t.json"), std::string::npos);
}

}  // namespace
}  // namespace parsimony
