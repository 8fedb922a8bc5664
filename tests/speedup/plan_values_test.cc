#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <string>

#include "parsimony/base/errors.h"
#include "parsimony/base/files.h"
#include "parsimony/masks/tensor_file.h"
#include "parsimony/speedup/plan.h"

namespace parsimony {
namespace {

std::vector<std::byte> bytes_of(const std::vector<float>& values) {
  std::vector<std::byte> bytes(values.size() * sizeof(float));
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

Plan example_with_values() {
  Plan plan;
  plan.updates = {{"conv2.bias", "constants of bn1", bytes_of({1, -2}), DType::kFloat32, {2}},
                  {"fc.weight", "its smallest elements are zero"},
                  {"scale", "recovered", bytes_of({0.5}), DType::kFloat32, {}}};
  plan.zeros = {{"fc.weight", 3}};
  plan.constants = Constants::kExact;
  plan.masks = {{"conv2.bias", {3}, {1, 0, 1}}};
  return plan;
}

class PlanValues : public testing::Test {
 protected:
  PlanValues() { std::filesystem::create_directories(folder_); }
  ~PlanValues() override { std::filesystem::remove_all(folder_); }

  std::string complaint() const {
    try {
      Plan::load(path_);
    } catch (const Error& error) {
      std::string text = error.what();
      for (size_t at; (at = text.find(folder_.string() + "/")) != std::string::npos;) {
        text.erase(at, folder_.string().size() + 1);
      }
      return text;
    }
    return "accepted";
  }

  const std::filesystem::path folder_ =
      std::filesystem::path(testing::TempDir()) / ("plan_values_test" + std::to_string(getpid()));
  const std::string path_ = (folder_ / "plan.json").string();
};

TEST_F(PlanValues, ComeBackFromTheFileBesideThePlan) {
  example_with_values().save(path_);
  EXPECT_EQ(Plan::load(path_), example_with_values());
  const std::string file = read_file(values_path(path_));
  const std::vector<FileTensor> tensors = parse_tensors(file, "v");
  ASSERT_EQ(tensors.size(), 3U);
  EXPECT_EQ(tensors[0].name, "conv2.bias");
  EXPECT_EQ(tensors[0].dims, Shape{2});
  EXPECT_EQ(tensors[1].name, "conv2.bias:mask");
  EXPECT_EQ(tensors[1].dtype, DType::kBool);
  EXPECT_EQ(tensors[2].dims, Shape{});
}

TEST_F(PlanValues, StandInTheJsonAsTypeShapeAndFingerprint) {
  const std::string text = example_with_values().to_json();
  const std::string expected = R"(  "updates": [
    {"tensor": "conv2.bias", "reason": "constants of bn1", "dtype": "float32", "dims": [2], "sha256": ")";
  EXPECT_NE(text.find(expected), std::string::npos) << text;
  EXPECT_NE(text.find("\"constants\": \"exact\""), std::string::npos);
  const Plan bare = Plan::from_json(text, "p");
  EXPECT_TRUE(bare.has_values());
  EXPECT_TRUE(bare.updates[0].values.empty());
  EXPECT_EQ(bare.to_json(), text);
}

TEST_F(PlanValues, APlanWithoutValuesIsOneFile) {
  Plan plan = example_with_values();
  plan.updates = {plan.updates[1]};
  plan.masks.clear();
  plan.save(path_);
  EXPECT_FALSE(std::filesystem::exists(values_path(path_)));
  EXPECT_EQ(Plan::load(path_), plan);
}

TEST_F(PlanValues, MissingFileIsNamed) {
  example_with_values().save(path_);
  std::filesystem::remove(values_path(path_));
  EXPECT_THROW(Plan::load(path_), IoError);
  const std::string expected =
      "plan.json: its updates have values, which are in a file beside it: ";
  EXPECT_EQ(complaint().substr(0, expected.size()), expected);
  EXPECT_NE(complaint().find("plan.json.safetensors"), std::string::npos) << complaint();
}

TEST_F(PlanValues, ValuesOfAnotherRunAreRefused) {
  example_with_values().save(path_);
  Plan other = example_with_values();
  other.updates[0].values = bytes_of({1, -3});
  write_file(values_path(path_), other.values_file());
  EXPECT_TRUE(
      complaint().starts_with("plan.json.safetensors: tensor \"conv2.bias\": found other "
                              "elements, the plan beside it wants those of SHA-256 "))
      << complaint();
  other.updates[0].values = bytes_of({1, -2, 0});
  other.updates[0].dims = {3};
  write_file(values_path(path_), other.values_file());
  EXPECT_EQ(complaint(),
            "plan.json.safetensors: tensor \"conv2.bias\": found float32[3], the plan beside it "
            "wants float32[2]; is it from another run?");
  other.updates.clear();
  write_file(values_path(path_), other.values_file());
  EXPECT_EQ(complaint(),
            "plan.json.safetensors: lacks tensor \"conv2.bias\", which the plan beside it names; "
            "is it from another run?");
}

TEST_F(PlanValues, WithoutATypeCannotBeSaved) {
  Plan plan = example_with_values();
  plan.updates[0].dtype = DType::kUnknown;
  EXPECT_THROW(plan.save(path_), UnsupportedError);
  EXPECT_FALSE(std::filesystem::exists(values_path(path_)));
}

}  // namespace
}  // namespace parsimony
