// Masks from elsewhere, through the whole command.
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "parsimony/masks/tensor_file.h"
#include "parsimony/onnx_io/model_file.h"
#include "parsimony/onnx_io/reader.h"
#include "parsimony/speedup/plan.h"
#include "tests/cli/command.h"
#include "tests/support/same_bytes.h"

namespace parsimony::test {
namespace {

/// float32 masks, as a script writes them: every `step`-th row of each convolution's kernel is 0.
void write_row_masks(const std::string& model, const std::string& path, int64_t step) {
  const onnx_io::ModelFile file(model);
  const Graph graph = onnx_io::to_graph(file);
  std::vector<FileTensor> tensors;
  std::vector<std::vector<float>> elements;
  for (const Weight& weight : graph.weights) {
    if (weight.dims.size() != 4) continue;
    std::vector<float> mask(weight.count(), 1);
    const int64_t row = weight.count() / weight.dims[0];
    for (int64_t i = 0; i < weight.dims[0]; i += step) {
      std::fill_n(mask.begin() + i * row, row, -0.0F);
    }
    elements.push_back(std::move(mask));
    tensors.push_back({weight.name, DType::kFloat32, weight.dims, {}});
  }
  for (size_t i = 0; i < tensors.size(); ++i) {
    tensors[i].data = std::as_bytes(std::span(elements[i]));
  }
  write_tensors(path, tensors);
}

class CliSpeedup : public testing::Test {
 protected:
  void SetUp() override {
    if (!kHasTorch) GTEST_SKIP() << "there is no libtorch";
  }

  Workplace place_;
};

TEST_F(CliSpeedup, RemovesWhatMasksLeaveDeadAndProvesIt) {
  write_row_masks(place_ / "cnn.onnx", place_ / "m.safetensors", 2);
  const Outcome outcome =
      place_.run("speedup cnn.onnx --masks m.safetensors -o a.onnx --plan p.json --report r.json");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_NE(lines_with(outcome.out, "Proven").find("with the masked weights set to zero"),
            std::string::npos)
      << outcome.out;
  EXPECT_NE(lines_with(outcome.out, "Constants: "), "") << outcome.out;
  EXPECT_NE(place_.bytes("r.json").find("\"absorbers\""), std::string::npos);
  EXPECT_LT(place_.bytes("a.onnx").size(), place_.bytes("cnn.onnx").size());
  EXPECT_EQ(Plan::load(place_ / "p.json").constants, Constants::kExact);

  ASSERT_EQ(place_.run("apply cnn.onnx --plan p.json -o b.onnx").code, 0);
  EXPECT_TRUE(same_bytes(place_.bytes("a.onnx"), place_.bytes("b.onnx")));
  EXPECT_EQ(place_.run("verify cnn.onnx a.onnx --plan p.json").code, 0);
  EXPECT_EQ(place_.run("verify cnn.onnx cnn.onnx --plan p.json").code, 1);
  const Outcome oracle = place_.run("verify cnn.onnx a.onnx --plan p.json --engine onnxruntime");
  EXPECT_TRUE(oracle.code == 0 || oracle.code == 3) << oracle.err;  // 3: not installed
}

TEST_F(CliSpeedup, ExactConstantsOfPruneAreThoseOfItsOwnMasks) {
  const Outcome pruned = place_.run(
      "prune cnn.onnx -o a.onnx --ratio 0.5 --constants exact --masks-out m.safetensors");
  ASSERT_EQ(pruned.code, 0) << pruned.err;
  ASSERT_EQ(place_.run("speedup cnn.onnx -o b.onnx --masks m.safetensors").code, 0);
  EXPECT_TRUE(same_bytes(place_.bytes("a.onnx"), place_.bytes("b.onnx")));
}

TEST_F(CliSpeedup, MasksThatKeepAllGiveTheSameBytes) {
  write_tensors(place_ / "m.safetensors", {});
  ASSERT_EQ(place_.run("speedup cnn.onnx --masks m.safetensors -o a.onnx").code, 0);
  EXPECT_TRUE(same_bytes(place_.bytes("a.onnx"), place_.bytes("cnn.onnx")));
}

TEST_F(CliSpeedup, SaysWhatIsWrongWithMasks) {
  EXPECT_EQ(place_.run("speedup cnn.onnx --masks none.safetensors -o a.onnx").code, 4);
  const float one = 1;
  write_tensors(place_ / "m.safetensors",
                {{"w9", DType::kFloat32, {1}, std::as_bytes(std::span(&one, 1))}});
  const Outcome outcome = place_.run("speedup cnn.onnx --masks m.safetensors -o a.onnx");
  EXPECT_EQ(outcome.code, 4);
  EXPECT_TRUE(outcome.err.starts_with("parsimony: the masks name tensor \"w9\"")) << outcome.err;
  EXPECT_FALSE(place_.has("a.onnx"));
}

TEST_F(CliSpeedup, ATrainedResidualNetwork) {
  const char* data = std::getenv("PARSIMONY_TEST_DATA");
  const std::string model =
      data == nullptr ? "" : std::string(data) + "/models/onnx/resnet20_cifar10.onnx";
  if (!std::filesystem::exists(model)) GTEST_SKIP() << "there is no " << model;
  write_row_masks(model, place_ / "m.safetensors", 3);
  const Outcome outcome =
      place_.run("speedup '" + model + "' --masks m.safetensors -o a.onnx --plan p.json -v");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_NE(lines_with(outcome.out, "Proven"), "") << outcome.out;
  const Plan plan = Plan::load(place_ / "p.json");
  EXPECT_EQ(plan.groups.size(), 10U) << outcome.out;
  EXPECT_FALSE(plan.updates.empty());
}

}  // namespace
}  // namespace parsimony::test
