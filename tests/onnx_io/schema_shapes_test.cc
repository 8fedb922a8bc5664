#include <gtest/gtest.h>
#include <onnx/defs/schema.h>

#include "parsimony/graph/infer.h"
#include "parsimony/graph/operators/schema.h"
#include "parsimony/onnx_io/reader.h"
#include "parsimony/onnx_io/reader_impl.h"
#include "tests/onnx_io/fixture.h"

namespace parsimony::onnx_io::test {
namespace {

std::optional<Shape> shape_in(const std::string& text, std::string_view value) {
  const TemporaryFolder folder;
  save(model_of(text), folder / "m.onnx");
  const ModelFile file(folder / "m.onnx");
  const Graph graph = to_graph(file);
  return infer(graph).shapes[graph.find(value)];
}

/// The table knows all of ai.onnx: Constant is read, and none stays a riddle.
TEST(SchemaShapes, EveryOperatorOfOnnxHasARow) {
  int known = 0;
  for (const onnx::OpSchema& schema : onnx::OpSchemaRegistry::get_all_schemas()) {
    if (!schema.domain().empty() || schema.Name() == "Constant") continue;
    EXPECT_NE(find_schema("", schema.Name()), nullptr) << schema.Name();
    ++known;
  }
  EXPECT_GE(known, 170);
}

/// Of another domain, whose operators are not in the table: the layers behind have their widths.
TEST(SchemaShapes, LibonnxTellsWhatTheTableDoesNot) {
  const std::string text = R"(
<ir_version: 8, opset_import: ["" : 13, "ai.onnx.ml" : 3]>
g (float[2,3] x, float[3,4] w) => (float[n,m] y)
{
  b = ai.onnx.ml.LabelEncoder <keys_floats = [1.5, 2.5], values_floats = [0.5, 1.0]> (x)
  y = MatMul(b, w)
})";
  EXPECT_EQ(shape_in(text, "b"), (Shape{2, 3}));
  EXPECT_EQ(shape_in(text, "y"), (Shape{2, 4}));
}

/// The type of a result in between is not known; that it is a tensor is, and of what shape.
TEST(SchemaShapes, ChainsOfWhatTheTableDoesNotTell) {
  const std::string text = R"(
<ir_version: 8, opset_import: ["" : 13, "ai.onnx.ml" : 2]>
g (string[2,3] x, float[3,4] w) => (float[n,m] y)
{
  a = ai.onnx.ml.LabelEncoder <keys_strings = ["p", "q"], values_strings = ["Q", "P"]> (x)
  b = ai.onnx.ml.LabelEncoder <keys_strings = ["P", "Q"], values_int64s = [1, 2]> (a)
  c = ai.onnx.ml.LabelEncoder <keys_int64s = [1, 2], values_floats = [0.5, 1.0]> (b)
  y = MatMul(c, w)
})";
  EXPECT_EQ(shape_in(text, "b"), (Shape{2, 3}));
  EXPECT_EQ(shape_in(text, "c"), (Shape{2, 3}));
  EXPECT_EQ(shape_in(text, "y"), (Shape{2, 4}));
}

/// libonnx 1.12 would read the type of an operand that has none.
TEST(SchemaShapes, NodesThatDoNotFitTheirSchemaHaveNone) {
  const std::string header = "<ir_version: 8, opset_import: [\"\" : 13, \"ai.onnx.ml\" : 2]> ";
  const std::string keys = "<keys_strings = [\"p\"], values_strings = [\"Q\"]>";
  const std::vector<std::string> bodies = {
      "(string[2] x) => (y) { z = my.Own(x) y = ai.onnx.ml.LabelEncoder " + keys + " (z) }",
      "(string[2] x) => (y) { y = ai.onnx.ml.LabelEncoder " + keys + " () }",
      "(float[2] x) => (y) { y = ai.onnx.ml.DictVectorizer (x) }"};
  for (const std::string& body : bodies) {
    EXPECT_EQ(shape_in(header + "g " + body, "y"), std::nullopt) << body;
  }
}

TEST(SchemaShapes, WhatNobodyKnowsHasNone) {
  EXPECT_EQ(shape_in("g (float[2,3] x) => (float[n] y) { y = my.Own(x) }", "y"), std::nullopt);
}

}  // namespace
}  // namespace parsimony::onnx_io::test
