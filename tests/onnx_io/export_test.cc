// A graph written as ONNX of opset 17: spelling, sizes, names, and what is refused.
#include "parsimony/onnx_io/export/export.h"

#include <gtest/gtest.h>
#include <onnx/onnx_pb.h>

#include <cstring>
#include <fstream>
#include <map>

#include "parsimony/base/errors.h"
#include "parsimony/base/ranges.h"
#include "parsimony/onnx_io/model_file.h"
#include "parsimony/onnx_io/reader.h"
#include "tests/support/fixture.h"

namespace parsimony::test {
namespace {

/// What becomes of a model in OnnxParser's notation.
onnx::ModelProto exported(const std::string& text, const std::vector<InputSpec>& inputs,
                          const onnx_io::ExportOptions& options = {}) {
  const TemporaryFolder folder;
  const std::string path = folder / "net.onnx";
  std::ofstream(path) << model_of(text).SerializeAsString();
  const onnx_io::ModelFile file(path);
  const Graph graph = onnx_io::to_graph(file);
  onnx::ModelProto result;
  EXPECT_TRUE(result.ParseFromString(onnx_io::export_onnx(graph, inputs, options)));
  return result;
}

std::vector<std::string> operators(const onnx::ModelProto& model) {
  std::vector<std::string> names;
  for (const auto& node : model.graph().node()) names.push_back(node.op_type());
  return names;
}

using Names = std::vector<std::string>;

constexpr char kOpset20[] = "<ir_version: 8, opset_import: [\"\" : 20]>\n";

TEST(ExportOnnx, LowersWhatIsNewerThanOpset17) {
  const auto model = exported(std::string(kOpset20) +
                                  "net (float[2,3] x) => (float[2] y)\n<int64[1] a = {1}>\n"
                                  "{ g = Gelu(x)\n y = ReduceMean<keepdims=0>(g, a) }",
                              {{{2, 3}, {}}});
  EXPECT_EQ(model.opset_import(0).version(), 17);
  EXPECT_EQ(operators(model), (Names{"Div", "Erf", "Add", "Mul", "Mul", "ReduceMean"}));
  EXPECT_EQ(model.graph().output(0).type().tensor_type().shape().dim_size(), 1);
}

// What decomposed programs do to a weight, for each position: 1.4 GB for a layer of ViT-B.
TEST(ExportOnnx, BroadcastsWeightsInsteadOfRepeatingThem) {
  const std::string repeats =
      "<int64[3] to = {5,2,2}, float[2,2] w = {1,2,3,4}>\n"
      "{ e = Expand(w, to)\n r = Reshape(e, to)\n ";
  const auto of_x =
      exported("net (float[5,2,2] x) => (float[5,2,2] y)\n" + repeats + "y = MatMul(x, r) }",
               {{{5, 2, 2}, {}}});
  EXPECT_EQ(operators(of_x), (Names{"MatMul"}));
  const auto of_both = exported("net (float[2,2] x) => (float[5,2,2] y)\n" + repeats +
                                    "z = Expand(x, to)\n y = MatMul(z, r) }",
                                {{{2, 2}, {}}});
  EXPECT_EQ(operators(of_both), (Names{"Expand", "MatMul"}));
  const std::string as_often =
      "net (float[N,2] x) => (float[N,2,2] y)\n"
      "<int64[1] zero = {0}, int64[2] rest = {2,2}, float[1,2,2] q = {1,2,3,4}, "
      "float[2,2] w = {1,2,3,4}>\n"
      "{ s = Shape(x)\n n = Gather<axis=0>(s, zero)\n to = Concat<axis=0>(n, rest)\n "
      "e = Expand(w, to)\n y = MatMul(q, e) }";
  const auto of_one = exported(as_often, {{{1, 2}, {}}}, {.dynamic_batch = true});
  EXPECT_TRUE(contains(operators(of_one), std::string("Expand"))) << "other batches have more";
}

TEST(ExportOnnx, FollowsSizesOnceAndForAll) {
  const std::string text =
      "net (float[N,3,4] x) => (float[N,12] y)\n<int64 zero = {0}, int64[1] axis = {0}, "
      "int64[1] rest = {-1}>\n"
      "{ s = Shape(x)\n n = Gather<axis=0>(s, zero)\n u = Unsqueeze(n, axis)\n"
      " c = Concat<axis=0>(u, rest)\n y = Reshape(x, c) }";
  const auto fixed = exported(text, {{{2, 3, 4}, {}}});
  EXPECT_EQ(operators(fixed), (Names{"Reshape"}));
  EXPECT_EQ(fixed.graph().input(0).type().tensor_type().shape().dim(0).dim_value(), 2);
  const auto open = exported(text, {{{2, 3, 4}, {}}}, {.dynamic_batch = true});
  EXPECT_EQ(operators(open), (Names{"Shape", "Gather", "Unsqueeze", "Concat", "Reshape"}));
  EXPECT_EQ(open.graph().input(0).type().tensor_type().shape().dim(0).dim_param(), "batch");
  EXPECT_EQ(open.graph().output(0).type().tensor_type().shape().dim(0).dim_param(), "batch");
}

TEST(ExportOnnx, BringsOperandsToOneType) {
  const auto model = exported(
      "net (int64[2,3] x) => (float[2,3] y)\n<float h = {0.5}>\n{ y = Mul(x, h) }", {{{2, 3}, {}}});
  EXPECT_EQ(operators(model), (Names{"Cast", "Mul"}));
}

TEST(ExportOnnx, NamesOutputsAsItIsTold) {
  const std::string text =
      "net (float[2] x) => (float[2] a, float[2] b)\n{ a = Relu(x)\n b = Neg(x) }";
  const auto model = exported(text, {{{2}, {}}}, {.outputs = {"first", "second"}});
  EXPECT_EQ(model.graph().output(0).name(), "first");
  EXPECT_EQ(model.graph().node(1).output(0), "second");
  EXPECT_THROW(exported(text, {{{2}, {}}}, {.outputs = {"1", "2", "3"}}), ConfigError);
}

TEST(ExportOnnx, LeavesOutWhatNoOutputNeeds) {
  const auto model = exported(
      "net (float[2] x) => (float[2] y)\n<float[2] w = {1, 2}>\n"
      "{ y = Relu(x)\n z = Mul(x, w) }",
      {{{2}, {}}});
  EXPECT_EQ(operators(model), (Names{"Relu"}));
  EXPECT_EQ(model.graph().initializer_size(), 0);
}

TEST(ExportOnnx, JoinsABatchNormWithItsConvolution) {
  const std::string text =
      "net (float[1,1,2,2] x) => (float[1,2,2,2] y)\n"
      "<float[2,1,1,1] w = {1, 2}, float[2] gamma = {3, 1}, float[2] beta = {0.5, 0},"
      " float[2] mean = {1, 2}, float[2] var = {4, 1}>\n"
      "{ c = Conv(x, w)\n y = BatchNormalization<epsilon = 0.0>(c, gamma, beta, mean, var) }";
  const std::vector<InputSpec> inputs{{{1, 1, 2, 2}, {}}};
  EXPECT_EQ(operators(exported(text, inputs)), (Names{"Conv", "BatchNormalization"}));
  const auto model = exported(text, inputs, {.fold_batchnorm = true});
  EXPECT_EQ(operators(model), (Names{"Conv"}));
  ASSERT_EQ(model.graph().initializer_size(), 2);
  std::map<std::string, std::vector<float>> weights;
  for (const auto& tensor : model.graph().initializer()) {
    auto& numbers = weights[tensor.name()];
    numbers.resize(tensor.raw_data().size() / sizeof(float));
    std::memcpy(numbers.data(), tensor.raw_data().data(), tensor.raw_data().size());
  }
  EXPECT_EQ(weights["w"], (std::vector<float>{1.5, 2}));
  EXPECT_EQ(weights["beta"], (std::vector<float>{-1, -2}));
}

TEST(ExportOnnx, LeavesABatchNormWhoseConvolutionIsReadTwice) {
  const auto model = exported(
      "net (float[1,1,2,2] x) => (float[1,1,2,2] y)\n"
      "<float[1,1,1,1] w = {1}, float[1] g = {3}, float[1] b = {0.5}, float[1] m = {1},"
      " float[1] v = {4}>\n"
      "{ c = Conv(x, w)\n n = BatchNormalization(c, g, b, m, v)\n y = Add(c, n) }",
      {{{1, 1, 2, 2}, {}}}, {.fold_batchnorm = true});
  EXPECT_EQ(operators(model), (Names{"Conv", "BatchNormalization", "Add"}));
}

TEST(ExportOnnx, RefusesAnOperatorWithoutCounterpart) {
  try {
    exported(
        "<ir_version: 8, opset_import: [\"\" : 17, \"torch\" : 1]>\n"
        "net (float[2] x) => (float[2] y)\n{ y = torch.foo(x) }",
        {{{2}, {}}});
    ADD_FAILURE() << "was written";
  } catch (const UnsupportedError& error) {
    EXPECT_EQ(std::string(error.what()),
              "node \"y\" cannot be exported: foo has no known counterpart in ONNX. Rewrite the "
              "line with operators that docs/guide/export.md lists");
  }
}

TEST(ExportOnnx, RefusesToOpenABatchThatIsWrittenDown) {
  EXPECT_THROW(exported("net (float[2,3,4] x) => (float[2,12] y)\n<int64[2] c = {2,12}>\n"
                        "{ y = Reshape(x, c) }",
                        {{{2, 3, 4}, {}}}, {.dynamic_batch = true}),
               UnsupportedError);
}

TEST(ExportOnnx, TheCheckerSaysWhatIsWrong) {
  onnx::ModelProto model = model_of("net (float[2,3] x) => (float[2,3] y)\n{ y = Relu(x) }");
  EXPECT_NO_THROW(onnx_io::check(model.SerializeAsString()));
  model.mutable_graph()->mutable_node(0)->set_op_type("Rely");
  EXPECT_THROW(onnx_io::check(model.SerializeAsString()), ModelError);
  model.mutable_graph()->mutable_node(0)->set_op_type("Flatten");
  EXPECT_NO_THROW(onnx_io::check(model.SerializeAsString()));
  model.mutable_graph()->mutable_output(0)->mutable_type()->mutable_tensor_type()->set_elem_type(
      onnx::TensorProto::INT64);
  EXPECT_THROW(onnx_io::check(model.SerializeAsString()), ModelError);
}

}  // namespace
}  // namespace parsimony::test
