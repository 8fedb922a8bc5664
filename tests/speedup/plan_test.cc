#include "parsimony/speedup/plan.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>
#include <string>

#include "parsimony/base/errors.h"
#include "parsimony/base/files.h"

namespace parsimony {
namespace {

HostTensor floats(DType dtype, Shape dims, std::vector<double> values) {
  HostTensor tensor;
  tensor.dtype = dtype;
  tensor.dims = std::move(dims);
  tensor.floats = std::move(values);
  return tensor;
}

Plan example() {
  Plan plan;
  plan.sha256 = std::string(64, 'a');
  plan.groups = {
      {"g0",
       4,
       2,
       "channel",
       false,
       {{"conv1.weight", 0, Role::kOut, 4, {0, 3}}, {"conv2.weight", 1, Role::kIn, 4, {0, 3}}}},
      {"g1", 8, 8, "head", true, {{"q.weight", 0, Role::kWith, 8, {0, 1, 2, 3, 4, 5, 6, 7}}}}};
  plan.integers = {
      {"flat", "shape", 1, HostTensor::vector({0, 512}), HostTensor::vector({0, 256})},
      {"conv2_out", "group", -1, HostTensor::scalar(4), HostTensor::scalar(2)},
      {"scaled", "B", 1, floats(DType::kFloat16, {1, 2}, {0.5, 1}),
       floats(DType::kFloat16, {1, 1}, {0.1})},
      {"k", "K", 1, HostTensor::scalar(7, DType::kInt32), HostTensor::scalar(5, DType::kInt32)}};
  plan.copies = {{"b_2", "b", "add2", 1}};
  plan.zeros = {{"fc.weight", 12}};
  plan.updates = {{"fc.weight", "level"}};
  plan.unpruned_dims = {{"fc.weight[0]", "graph output \"logits\""}};
  return plan;
}

TEST(Plan, TextIsLaidOutForDiff) {
  EXPECT_EQ(example().to_json(), R"({
  "parsimony_plan": 2,
  "source": {"format": "onnx", "sha256": "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"},
  "groups": [
    {"id": "g0", "size": 4, "kept": 2, "granularity": "channel", "mixes": false, "slices": [
      {"tensor": "conv1.weight", "axis": 0, "role": "out", "size": 4, "keep": [0, 3]},
      {"tensor": "conv2.weight", "axis": 1, "role": "in", "size": 4, "keep": [0, 3]}
    ]},
    {"id": "g1", "size": 8, "kept": 8, "granularity": "head", "mixes": true, "slices": [
      {"tensor": "q.weight", "axis": 0, "role": "with", "size": 8, "keep": [0, 1, 2, 3, 4, 5, 6, 7]}
    ]}
  ],
  "integers": [
    {"node": "flat", "what": "shape", "input": 1, "from": [0, 512], "to": [0, 256]},
    {"node": "conv2_out", "what": "group", "from": 4, "to": 2},
    {"node": "scaled", "what": "B", "input": 1, "from": {"dtype": "float16", "dims": [1, 2], "values": [0.5, 1.0]}, "to": {"dtype": "float16", "dims": [1, 1], "values": [0.1]}},
    {"node": "k", "what": "K", "input": 1, "from": {"dtype": "int32", "dims": [], "values": [7]}, "to": {"dtype": "int32", "dims": [], "values": [5]}}
  ],
  "copies": [
    {"tensor": "b_2", "of": "b", "consumer": "add2", "input": 1}
  ],
  "zeros": [
    {"tensor": "fc.weight", "smallest": 12}
  ],
  "updates": [
    {"tensor": "fc.weight", "reason": "level"}
  ],
  "unpruned_dims": [
    {"axis": "fc.weight[0]", "reason": "graph output \"logits\""}
  ]
}
)");
}

TEST(Plan, ReadsWhatItWrote) {
  EXPECT_EQ(Plan::from_json(example().to_json(), "p.json"), example());
  EXPECT_EQ(Plan::from_json(Plan().to_json(), "p.json"), Plan());
}

TEST(Plan, FilesOfADirectory) {
  Plan plan;
  plan.files = {{"config.json", "{\"hidden_size\": 48}\n"},
                {"1_Pooling/config.json", "{}"},
                {"tokenizer.model", std::nullopt}};
  plan.renamings = {{"layers.1.weight", ""}, {"layers.2.weight", "layers.1.weight"}};
  const std::string json = plan.to_json();
  EXPECT_EQ(Plan::from_json(json, "p.json"), plan);
  EXPECT_EQ(Plan().to_json().find("files"), std::string::npos);
  for (const std::string name : {"/etc/passwd", "../config.json", "a/../../b"}) {
    std::string other = json;
    other.replace(other.find("1_Pooling/config.json"), 21, name);
    try {
      Plan::from_json(other, "p.json");
      ADD_FAILURE() << name;
    } catch (const ConfigError& error) {
      EXPECT_EQ(std::string(error.what()), "p.json: files[1].name: found \"" + name +
                                               "\", expected a path within the directory");
    }
  }
}

TEST(Plan, ReadsVersion1) {
  std::string text = example().to_json();
  for (const auto& [now, before] :
       {std::pair("_plan\": 2", "_plan\": 1"), std::pair("\"updates\"", "\"folds\""),
        std::pair("\"unpruned_dims\"", "\"kept_whole\"")}) {
    text.replace(text.find(now), std::string_view(now).size(), before);
  }
  EXPECT_EQ(Plan::from_json(text, "p.json"), example());
}

TEST(Plan, BlocksStandBeforeGroups) {
  Plan plan;
  plan.blocks = {{"add2", 1}, {"add5", 0}};
  EXPECT_FALSE(plan.empty());
  const std::string json = plan.to_json();
  EXPECT_NE(json.find(R"(
  "blocks": [
    {"add": "add2", "kept_input": 1},
    {"add": "add5", "kept_input": 0}
  ],
  "groups": [])"),
            std::string::npos)
      << json;
  EXPECT_EQ(Plan::from_json(json, "p.json"), plan);
  EXPECT_EQ(Plan().to_json().find("blocks"), std::string::npos);
  try {
    Plan::from_json(R"({"parsimony_plan": 2, "blocks": [{"add": "a", "kept_input": 2}],
                        "groups": []})",
                    "p.json");
    FAIL();
  } catch (const ConfigError& error) {
    EXPECT_STREQ(error.what(),
                 "p.json: blocks[0].kept_input: found 2, expected an integer from 0 to 1");
  }
}

TEST(Plan, InputsOutputsAndStates) {
  Plan plan;
  plan.ends = {{"past", true, 1, 4, {0, 2}}, {"present", false, 1, 4, {0, 2}}};
  plan.states = {{"present", "past"}};
  const std::string json = plan.to_json();
  EXPECT_NE(json.find(R"(
  "groups": [],
  "interface": [
    {"input": "past", "axis": 1, "size": 4, "keep": [0, 2]},
    {"output": "present", "axis": 1, "size": 4, "keep": [0, 2]}
  ],
  "states": [
    {"output": "present", "input": "past"}
  ],
  "integers": [])"),
            std::string::npos)
      << json;
  EXPECT_EQ(Plan::from_json(json, "p.json"), plan);
  EXPECT_EQ(Plan().to_json().find("interface"), std::string::npos);
}

TEST(Plan, SmallestPlan) {
  const Plan plan = Plan::from_json(R"({"parsimony_plan": 2, "groups": []})", "p.json");
  EXPECT_EQ(plan, Plan());
  EXPECT_TRUE(plan.empty());
}

TEST(Plan, EmptyMeansThatNothingChanges) {
  EXPECT_FALSE(example().empty());
  Plan plan;
  plan.groups = {{"g0", 2, 2, "channel", false, {{"w", 0, Role::kOut, 2, {0, 1}}}}};
  plan.unpruned_dims = {{"w[1]", "graph input"}};
  plan.zeros = {{"w", 0}};
  EXPECT_TRUE(plan.empty());
  Plan zeroed = plan;
  zeroed.zeros[0].smallest = 1;
  EXPECT_FALSE(zeroed.empty());
  plan.groups[0].slices[0].keep = {1};
  EXPECT_FALSE(plan.empty());
}

TEST(Plan, NamesThatJsonCannotHold) {
  Plan plan;
  plan.copies = {{"bad \xff name", "b", "add", 0}};
  EXPECT_THROW(plan.to_json(), UnsupportedError);
  plan = {};
  plan.integers = {{"n", "x", 0, HostTensor::scalar(1),
                    floats(DType::kFloat32, {}, {std::numeric_limits<double>::infinity()})}};
  EXPECT_THROW(plan.to_json(), UnsupportedError);
}

RC_GTEST_PROP(Plan, RoundTrip, ()) {
  Plan plan;
  PlanGroup group;
  group.id = "g";
  group.size = *rc::gen::inRange(1, 100);
  group.kept = *rc::gen::inRange(0, group.size + 1);
  group.mixes = *rc::gen::arbitrary<bool>();
  auto keep =
      *rc::gen::nonEmpty(rc::gen::unique<std::vector<int64_t>>(rc::gen::inRange<int64_t>(0, 1000)));
  std::sort(keep.begin(), keep.end());
  group.slices = {{"w\"\\\n\t/é", *rc::gen::inRange(0, 5), Role::kOut, 1000, keep}};
  plan.groups = {group};
  const auto values = *rc::gen::arbitrary<std::vector<int64_t>>();
  HostTensor numbers = floats(DType::kFloat64, {}, {*rc::gen::arbitrary<double>()});
  RC_PRE(std::isfinite(numbers.floats[0]));
  plan.integers = {{"n", "a", -1, HostTensor::vector(values), HostTensor::scalar(-1)},
                   {"n", "b", 2, numbers, floats(DType::kFloat64, {1}, {-0.0})}};
  const Plan back = Plan::from_json(plan.to_json(), "p.json");
  RC_ASSERT(back == plan);
  RC_ASSERT(std::signbit(back.integers[1].to.floats[0]));
}

/// Breaks the example by a replacement in its text and returns the complaint.
std::string complaint(const std::string& from, const std::string& to) {
  std::string text = example().to_json();
  const size_t at = text.find(from);
  if (at == std::string::npos) return "not in the example: " + from;
  text.replace(at, from.size(), to);
  try {
    Plan::from_json(text, "p.json");
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "accepted";
}

TEST(Plan, FaultsAreNamedWithTheirPlace) {
  struct Case {
    std::string from, to, expected;
  };
  const Case cases[] = {
      {"\"keep\": [0, 3]", "\"keep\": [3, 0]",
       "p.json: groups[0].slices[0].keep[1]: found 0 after 3, expected ascending indices"},
      {"\"keep\": [0, 3]", "\"keep\": [0, 0]",
       "p.json: groups[0].slices[0].keep[1]: found 0 after 0, expected ascending indices"},
      {"\"keep\": [0, 3]", "\"keep\": [0, 4]",
       "p.json: groups[0].slices[0].keep[1]: found 4, expected an integer from 0 to 3"},
      {"\"keep\": [0, 3]", "\"keep\": [-1]",
       "p.json: groups[0].slices[0].keep[0]: found -1, expected an integer from 0 to 3"},
      {"\"keep\": [0, 3]", "\"keep\": [0, 1.5]",
       "p.json: groups[0].slices[0].keep[1]: found 1.5, expected an integer from 0 to 3"},
      {"\"keep\": [0, 3]", "\"keep\": [18446744073709551615]",
       "p.json: groups[0].slices[0].keep[0]: found 18446744073709551615, expected an integer from "
       "0 "
       "to 3"},
      {"\"keep\": [0, 3]", "\"keep\": []",
       "p.json: groups[0].slices[0].keep: found none, expected at least one index"},
      {"\"keep\": [0, 3]", "\"keep\": 3",
       "p.json: groups[0].slices[0].keep: found 3, expected a list"},
      {"\"keep\": [0, 3]", "\"kep\": [0, 3]",
       "p.json: groups[0].slices[0]: unknown key \"kep\". Did you mean \"keep\"?"},
      {", \"keep\": [0, 3]", "", "p.json: groups[0].slices[0]: lacks \"keep\""},
      {"\"axis\": 0", "\"axis\": -1",
       "p.json: groups[0].slices[0].axis: found -1, expected an integer from 0 to 2147483647"},
      {"\"role\": \"out\"", "\"role\": \"rows\"",
       "p.json: groups[0].slices[0].role: found \"rows\", expected \"out\", \"in\" or \"with\""},
      {"\"size\": 4, \"kept\": 2", "\"size\": 4, \"kept\": 5",
       "p.json: groups[0].kept: found 5, expected an integer from 0 to 4"},
      {"\"mixes\": false", "\"mixes\": 0",
       "p.json: groups[0].mixes: found 0, expected true or false"},
      {"\"tensor\": \"conv1.weight\"", "\"tensor\": \"\"",
       "p.json: groups[0].slices[0].tensor: found \"\", expected a name"},
      {"\"to\": 2}", "\"to\": {\"dtype\": \"float32\", \"dims\": [2], \"values\": [2, 3]}}",
       "p.json: integers[1].to: found an object, expected integers, or one number: it is an "
       "attribute"},
      {"\"to\": 2}", "\"to\": \"two\"}",
       "p.json: integers[1].to: found \"two\", expected an integer from -9223372036854775808 to "
       "9223372036854775807"},
      {"\"dtype\": \"int32\"", "\"dtype\": \"int33\"",
       "p.json: integers[3].from.dtype: unknown element type \"int33\". Did you mean \"int32\"?"},
      {"\"values\": [7]", "\"values\": [3000000000]",
       "p.json: integers[3].from.values[0]: found 3000000000, expected an integer from -2147483648 "
       "to 2147483647"},
      {"\"values\": [7]", "\"values\": [7, 8]",
       "p.json: integers[3].from.values: found 2 values, expected as many as [] has"},
      {"\"values\": [0.5, 1.0]", "\"values\": [0.5, \"x\"]",
       "p.json: integers[2].from.values[1]: found \"x\", expected a number"},
      {"\"parsimony_plan\": 2", "\"parsimony_plan\": 3",
       "p.json: parsimony_plan: found 3, expected 1 or 2: the plan comes from a newer version"},
      {"\"parsimony_plan\": 2,", "",
       "p.json: expected an object with \"parsimony_plan\": is this a plan?"},
      {"\"sha256\": \"a", "\"sha256\": \"",
       "p.json: source.sha256: found \"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa…, expected 64 "
       "lower-case hexadecimal digits"},
      {"\"zeros\": [", "\"zero\": [", "p.json: unknown key \"zero\". Did you mean \"zeros\"?"},
  };
  for (const Case& c : cases) {
    const std::string found = complaint(c.from, c.to);
    EXPECT_TRUE(found.starts_with(c.expected))
        << "found:  " << found << "\nexpected: " << c.expected;
  }
}

TEST(Plan, BrokenTextIsAConfigError) {
  const std::string whole = example().to_json();
  for (size_t length = 0; length + 2 < whole.size(); length += 7) {
    EXPECT_THROW(Plan::from_json(whole.substr(0, length), "p.json"), ConfigError) << length;
  }
  EXPECT_THROW(Plan::from_json("[]", "p.json"), ConfigError);
  EXPECT_THROW(Plan::from_json("{\"parsimony_plan\": 2e999, \"groups\": []}", "p.json"),
               ConfigError);
  const std::string deep(200000, '[');
  EXPECT_THROW(Plan::from_json(deep, "p.json"), ConfigError);
  const std::string nested = deep + std::string(deep.size(), ']');
  EXPECT_THROW(Plan::from_json("{\"parsimony_plan\": 2, \"groups\": " + nested + "}", "p.json"),
               ConfigError);
}

class PlanFile : public testing::Test {
 protected:
  PlanFile() { std::filesystem::create_directories(folder_); }
  ~PlanFile() override { std::filesystem::remove_all(folder_); }

  int files() const {
    return static_cast<int>(std::distance(std::filesystem::directory_iterator(folder_), {}));
  }

  const std::filesystem::path folder_ =
      std::filesystem::path(testing::TempDir()) / ("plan_test" + std::to_string(getpid()));
  const std::string path_ = (folder_ / "plan.json").string();
};

TEST_F(PlanFile, SaveAndLoad) {
  example().save(path_);
  Plan().save(path_);
  EXPECT_EQ(Plan::load(path_), Plan());
  EXPECT_EQ(files(), 1);
}

TEST_F(PlanFile, LoadFaultsNameTheFile) {
  EXPECT_THROW(Plan::load((folder_ / "absent.json").string()), IoError);
  EXPECT_THROW(Plan::load(folder_.string()), IoError);
  write_file(path_, "{}");
  try {
    Plan::load(path_);
    FAIL() << "accepted";
  } catch (const ConfigError& error) {
    EXPECT_TRUE(std::string(error.what()).starts_with(path_ + ": ")) << error.what();
  }
}

TEST_F(PlanFile, AFailedSaveLeavesTheOldFile) {
  example().save(path_);
  Plan unwritable;
  unwritable.copies = {{"\xff", "b", "add", 0}};
  EXPECT_THROW(unwritable.save(path_), UnsupportedError);
  EXPECT_EQ(Plan::load(path_), example());
  EXPECT_THROW(example().save((folder_ / "absent" / "plan.json").string()), IoError);
  std::filesystem::create_directory(folder_ / "taken");
  EXPECT_THROW(example().save((folder_ / "taken").string()), IoError);
  EXPECT_EQ(files(), 2) << "a temporary file is left";
}

}  // namespace
}  // namespace parsimony
