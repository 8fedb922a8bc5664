// Inputs, and ONNX Runtime's answers where it is installed.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <optional>

#include "parsimony/base/errors.h"
#include "parsimony/base/files.h"
#include "parsimony/engines/onnx_runtime.h"
#include "parsimony/engines/random_inputs.h"
#include "parsimony/onnx_io/model_file.h"
#include "parsimony/onnx_io/reader.h"
#include "tests/support/fixture.h"

namespace parsimony::runtime {
namespace {

using test::model_of;
using test::TemporaryFolder;

/// A model on disk, as a graph and as what it was read from.
struct OnDisk {
  explicit OnDisk(const std::string& text) : bytes(model_of(text).SerializeAsString()) {
    write_file(path(), bytes);
    file.emplace(path());
    graph = onnx_io::to_graph(*file);
  }
  std::string path() const { return folder / "model.onnx"; }

  TemporaryFolder folder;
  std::string bytes;
  std::optional<onnx_io::ModelFile> file;
  Graph graph;
};

template <typename Element>
std::vector<Element> elements_of(const TensorBytes& tensor) {
  std::vector<Element> elements(tensor.bytes.size() / sizeof(Element));
  std::memcpy(elements.data(), tensor.bytes.data(), tensor.bytes.size());
  return elements;
}

template <typename Element>
TensorBytes tensor_of(const std::string& name, DType dtype, Shape dims,
                      const std::vector<Element>& elements) {
  TensorBytes tensor{name, dtype, std::move(dims), {}};
  tensor.bytes.resize(elements.size() * sizeof(Element));
  std::memcpy(tensor.bytes.data(), elements.data(), tensor.bytes.size());
  return tensor;
}

constexpr const char* kTwoInputs =
    "net (float[N,3] x, int64[N,4] input_mask) => (float[N,3] y, int64[N,4] z)\n"
    "{ y = Relu(x)\n z = Identity(input_mask) }";

TEST(RandomInputs, FillTheShapesThatTheFileLeavesOpen) {
  const OnDisk model(kTwoInputs);
  const auto one = random_inputs(model.graph);
  ASSERT_EQ(one.size(), 2U);
  EXPECT_EQ(one[0].name, "x");
  EXPECT_EQ(one[0].dims, (Shape{1, 3}));
  EXPECT_EQ(one[1].dims, (Shape{1, 4}));
  const auto five = random_inputs(model.graph, {.batch = 5});
  EXPECT_EQ(five[1].dims, (Shape{5, 4}));
  EXPECT_EQ(batch_of(five), 5);
  const auto given = random_inputs(model.graph, {.specs = {{{7, 3}, {}}}});
  EXPECT_EQ(given[0].dims, (Shape{7, 3}));
  EXPECT_EQ(random_inputs(model.graph, {.specs = {{{7, 3}, {}}}, .batch = 2})[0].dims,
            (Shape{2, 3}));
}

TEST(RandomInputs, GoBySeedAndByWhatTheNameSays) {
  const OnDisk model(kTwoInputs);
  const auto a = random_inputs(model.graph, {.batch = 100, .seed = 3});
  const auto b = random_inputs(model.graph, {.batch = 100, .seed = 3});
  const auto c = random_inputs(model.graph, {.batch = 100, .seed = 4});
  EXPECT_EQ(a[0].bytes, b[0].bytes);
  EXPECT_NE(a[0].bytes, c[0].bytes);
  double sum = 0;
  for (const float element : elements_of<float>(a[0])) sum += element;
  EXPECT_LT(std::abs(sum / 300), 0.3);
  for (const int64_t element : elements_of<int64_t>(a[1])) {
    EXPECT_TRUE(element == 0 || element == 1) << element;
  }
}

TEST(RandomInputs, OfHalfPrecisionAndBytes) {
  const OnDisk model(
      "net (float16[2,9] x, uint8[2,90] w) => (float16[2,9] y, uint8[2,90] z)\n"
      "{ y = Identity(x)\n z = Identity(w) }");
  const auto inputs = random_inputs(model.graph);
  EXPECT_EQ(inputs[0].bytes.size(), 36U);
  for (const uint8_t element : elements_of<uint8_t>(inputs[1])) EXPECT_LT(element, 127);
}

TEST(RandomInputs, AFixedBatchStays) {
  const OnDisk model("net (float[2,3] x) => (float[2,3] y)\n{ y = Relu(x) }");
  EXPECT_EQ(random_inputs(model.graph, {.batch = 2})[0].dims, (Shape{2, 3}));
  EXPECT_THROW(random_inputs(model.graph, {.batch = 4}), UnsupportedError);
}

TEST(RandomInputs, BatchIsNoScalarsOrVectors) {
  const TensorBytes vector{"v", DType::kFloat32, {16000}, {}};
  const TensorBytes matrix{"m", DType::kFloat32, {8, 2}, {}};
  EXPECT_EQ(batch_of({vector}), 1);
  EXPECT_EQ(batch_of({vector, matrix}), 8);
  EXPECT_EQ(batch_of({}), 1);
}

std::optional<OnnxRuntime> engine() {
  try {
    return find_onnx_runtime();
  } catch (const UnsupportedError&) {
    return std::nullopt;
  }
}

TEST(OnnxRuntime, ThatIsNone) {
  EXPECT_THROW(OnnxRuntime("/none/libonnxruntime.so"), UnsupportedError);
  EXPECT_THROW(OnnxRuntime("libc.so.6"), UnsupportedError);
}

TEST(OnnxRuntime, ComputesFromFilesAndBytes) {
  const auto library = engine();
  if (!library) GTEST_SKIP() << "there is no ONNX Runtime";
  EXPECT_NE(library->version(), "");
  EXPECT_TRUE(library->path().find("onnxruntime") != std::string::npos) << library->path();
  const OnDisk model(
      "net (float[N,2] x, int64[2] i) => (float[N,2] y, int64[2] z, float s)\n"
      "<float[2,2] w = {1,2,3,4}>\n"
      "{ y = MatMul(x, w)\n z = Add(i, i)\n s = ReduceSum<keepdims=0>(x) }");
  for (const bool from_file : {true, false}) {
    const auto net = from_file ? library->open(model.path(), {.threads = 2})
                               : library->open_bytes(model.bytes, {.threads = 1});
    const TensorList inputs = {tensor_of<float>("x", DType::kFloat32, {2, 2}, {1, 0, 1, -1}),
                               tensor_of<int64_t>("i", DType::kInt64, {2}, {5, -7})};
    net->bind(inputs);
    net->compute();
    net->compute();  // the inputs are still there
    const auto outputs = net->outputs();
    EXPECT_EQ(net->run({inputs}, {.alternate_kernels = true}).at(0).at(0).bytes, outputs[0].bytes);
    ASSERT_EQ(outputs.size(), 3U);
    EXPECT_EQ(outputs[0].name, "y");
    EXPECT_EQ(outputs[0].dims, (Shape{2, 2}));
    EXPECT_EQ(elements_of<float>(outputs[0]), (std::vector<float>{1, 2, -2, -2}));
    EXPECT_EQ(elements_of<int64_t>(outputs[1]), (std::vector<int64_t>{10, -14}));
    EXPECT_EQ(outputs[2].dims, Shape{});
    EXPECT_EQ(elements_of<float>(outputs[2]), std::vector<float>{1});
  }
}

/// Weights of large models are read as they are, also transposed ones.
TEST(OnnxRuntime, LargeModelsComputeTheSame) {
  const auto library = engine();
  if (!library) GTEST_SKIP() << "there is no ONNX Runtime";
  const OnDisk model(
      "net (float[1,2,3] x) => (float[1,2,2] y)\n"
      "<float[2,3] w = {1,2,3,4,5,6}>\n"
      "{ t = Transpose<perm = [1,0]>(w)\n y = MatMul(x, t) }");
  const auto x = tensor_of<float>("x", DType::kFloat32, {1, 2, 3}, {1, 0, 0, 0, -1, 1});
  for (const bool large : {false, true}) {
    const auto net = library->open(model.path(), {.threads = 1, .large = large});
    EXPECT_EQ(elements_of<float>(net->run({{x}}, {}).at(0).at(0)),
              (std::vector<float>{1, 4, 1, 1}));
  }
}

TEST(OnnxRuntime, SaysWhyItRefuses) {
  const auto library = engine();
  if (!library) GTEST_SKIP() << "there is no ONNX Runtime";
  const auto message_of = [](const auto& work) -> std::string {
    try {
      work();
    } catch (const UnsupportedError& error) {
      return error.what();
    }
    return {};
  };
  EXPECT_TRUE(message_of([&] { library->open("/none.onnx", {}); }).starts_with("ONNX Runtime: "));
  EXPECT_NE(message_of([&] { library->open_bytes("no model", {}); }), "");
  const OnDisk unknown("net (float[2,6] x) => (float[2,6] y)\n{ y = Unheard(x) }");
  EXPECT_NE(message_of([&] { library->open(unknown.path(), {}); }).find("Unheard"),
            std::string::npos);
  const OnDisk model("net (float[2,3] x) => (float[2,3] y)\n{ y = Relu(x) }");
  const auto net = library->open(model.path(), {});
  const std::vector<float> zeros(8, 0);
  net->bind({tensor_of<float>("x", DType::kFloat32, {2, 4}, zeros)});
  EXPECT_NE(message_of([&] { net->compute(); }).find("nvalid dimensions"), std::string::npos);
  EXPECT_NE(message_of([&] { net->bind({{"x", DType::kString, {1}, {}}}); }), "");
}

}  // namespace
}  // namespace parsimony::runtime
