#include "parsimony/onnx_io/editor.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "parsimony/base/errors.h"
#include "parsimony/onnx_io/reader.h"
#include "tests/onnx_io/fixture.h"

namespace parsimony::onnx_io::test {
namespace {

using onnx::TensorProto;

/// A model in a file, an editor on it, and what was written.
struct Edit {
  TemporaryFolder folder;
  ModelFile file;
  OnnxEditor editor;

  explicit Edit(const onnx::ModelProto& model)
      : file((save(model, folder / "m.onnx"), folder / "m.onnx")), editor(file) {}
  explicit Edit(const std::string& text) : Edit(model_of(text)) {}

  onnx::ModelProto written() {
    file.write(folder / "out.onnx");
    return load(folder / "out.onnx");
  }
};

std::vector<double> numbers_of(const TensorProto& tensor) {
  onnx::ModelProto model = model_of("g (float[2] x) => (float[2] y) { y = Relu(x) }");
  *model.mutable_graph()->add_initializer() = tensor;
  TemporaryFolder folder;
  save(model, folder / "t.onnx");
  const ModelFile file(folder / "t.onnx");
  const Graph graph = to_graph(file);
  const HostTensor host = to_host(graph.weights[WeightId(0)]);
  std::vector<double> numbers;
  for (int64_t i = 0; i < host.count(); ++i) numbers.push_back(host.number(i));
  return numbers;
}

std::vector<std::string> names_of(const google::protobuf::RepeatedPtrField<TensorProto>& list) {
  std::vector<std::string> names;
  for (const auto& item : list) names.push_back(item.name());
  return names;
}

const std::vector<AxisKeep> kCorners = {{0, 3, {0, 2}}, {1, 4, {1, 3}}};

TEST(Editor, AssignsInTheFieldThatHoldsIt) {
  for (const bool raw : {true, false}) {
    onnx::ModelProto model = model_of("g (float[2] x) => (float[2] y) { y = Op(x, w) }");
    *model.mutable_graph()->add_initializer() = counting("w", TensorProto::FLOAT, {2, 2}, raw);
    Edit edit(model);
    const std::vector<float> values = {5, 6, 7, 8};
    edit.editor.assign("w", std::as_bytes(std::span(values)));
    const onnx::ModelProto written = edit.written();
    const TensorProto& w = written.graph().initializer(0);
    EXPECT_EQ(w.has_raw_data(), raw);
    EXPECT_EQ(numbers_of(w), (std::vector<double>{5, 6, 7, 8}));
    EXPECT_THROW(edit.editor.assign("w", std::as_bytes(std::span(values).first(3))), ModelError);
    EXPECT_THROW(edit.editor.assign("v", std::as_bytes(std::span(values))), ModelError);
  }
}

TEST(Editor, SlicesEveryTypeInTheFieldThatHoldsIt) {
  for (int type = TensorProto::FLOAT; type <= TensorProto::BFLOAT16; ++type) {
    const bool number = type != TensorProto::STRING && type != TensorProto::COMPLEX64 &&
                        type != TensorProto::COMPLEX128;
    for (const bool raw : {true, false}) {
      if (!number) continue;
      onnx::ModelProto model = model_of("g (float[2] x) => (float[2] y) { y = Op(x, w) }");
      TensorProto& w = *model.mutable_graph()->add_initializer();
      w = counting("w", type, {3, 4}, raw);
      w.set_doc_string("kept");
      const std::vector<double> all = numbers_of(w);
      Edit edit(model);
      edit.editor.slice("w", kCorners);
      onnx::ModelProto out = edit.written();
      const TensorProto& kept = initializer(out, "w");
      EXPECT_EQ(numbers_of(kept), (std::vector<double>{all[1], all[3], all[9], all[11]})) << type;
      EXPECT_EQ(kept.has_raw_data(), raw) << type;
      EXPECT_EQ(kept.doc_string(), "kept");
      EXPECT_EQ(kept.dims(0), 2);
      EXPECT_EQ(kept.dims(1), 2);
    }
  }
}

TEST(Editor, SlicesConstantNodes) {
  Edit edit(R"(g (float[2] x) => (float[2] y) {
    a = Constant <value = float[3] {1, 2, 3}> ()
    b = Constant <value_floats = [1.0, 2.0, 3.0]> ()
    c = Constant <value_ints = [1, 2, 3]> ()
    d = Constant <value_int = 1> ()
    y = Op (x, a, b, c, d)
  })");
  const std::vector<AxisKeep> ends = {{0, 3, {0, 2}}};
  for (const char* name : {"a", "b", "c"}) edit.editor.slice(name, ends);
  EXPECT_NE(error_of<ModelError>([&] { edit.editor.slice("d", ends); }), "");
  const onnx::ModelProto out = edit.written();
  const auto& tensor = out.graph().node(0).attribute(0).t();
  EXPECT_EQ(tensor.dims(0), 2);
  EXPECT_EQ(tensor.float_data(1), 3);
  EXPECT_EQ(out.graph().node(1).attribute(0).floats_size(), 2);
  EXPECT_EQ(out.graph().node(2).attribute(0).ints(1), 3);
}

TEST(Editor, LeavesEverythingElseAsItWas) {
  onnx::ModelProto model = model_of(R"(g (float[2] x) => (float[2] y) { y = Op(x, w, v) })");
  *model.mutable_graph()->add_initializer() = counting("w", TensorProto::FLOAT, {3, 4}, true);
  *model.mutable_graph()->add_initializer() = counting("v", TensorProto::FLOAT, {3, 4}, false);
  auto& property = *model.add_metadata_props();
  property.set_key("author");
  property.set_value("someone");
  // Fields that this version does not know: number 999, an integer and a text.
  ASSERT_TRUE(model.ParseFromString(model.SerializeAsString() + "\xB8\x3E\x05"));
  onnx::NodeProto& node = *model.mutable_graph()->mutable_node(0);
  ASSERT_TRUE(node.ParseFromString(node.SerializeAsString() + "\xBA\x3E\x05later"));
  Edit edit(model);
  edit.editor.slice("w", kCorners);
  onnx::ModelProto out = edit.written();
  initializer(out, "w") = initializer(model, "w");
  EXPECT_EQ(out.SerializeAsString(), model.SerializeAsString());
}

TEST(Editor, SlicingUpdatesADeclaredInitializer) {
  Edit edit(R"(<ir_version: 3, opset_import: ["" : 9]>
    g (float[2] x, float[3, 4] w = {1,2,3,4,5,6,7,8,9,10,11,12}) => (float[2] y) {
      y = Op (x, w) })");
  edit.editor.slice("w", kCorners);
  const onnx::ModelProto out = edit.written();
  const auto& shape = out.graph().input(1).type().tensor_type().shape();
  EXPECT_EQ(shape.dim(0).dim_value(), 2);
  EXPECT_EQ(shape.dim(1).dim_value(), 2);
}

TEST(Editor, SliceTwiceEqualsSliceOnce) {
  onnx::ModelProto model = model_of("g (float[2] x) => (float[2] y) { y = Op(x, w) }");
  *model.mutable_graph()->add_initializer() = counting("w", TensorProto::INT32, {6, 2}, true);
  Edit once(model);
  once.editor.slice("w", std::vector<AxisKeep>{{0, 6, {1, 5}}, {1, 2, {1}}});
  Edit twice(model);
  twice.editor.slice("w", std::vector<AxisKeep>{{0, 6, {1, 2, 5}}});
  twice.editor.slice("w", std::vector<AxisKeep>{{0, 3, {0, 2}}, {1, 2, {1}}});
  EXPECT_EQ(once.written().SerializeAsString(), twice.written().SerializeAsString());
}

TEST(Editor, ZeroesTheSmallestOfEveryType) {
  // counting: 1 -2 3 -4 5 -6, so the smallest come first; bool is 0 1 0 1 0 1.
  for (int type = TensorProto::FLOAT; type <= TensorProto::BFLOAT16; ++type) {
    const bool number = type != TensorProto::STRING && type != TensorProto::COMPLEX64 &&
                        type != TensorProto::COMPLEX128;
    for (const bool raw : {true, false}) {
      if (!number) continue;
      onnx::ModelProto model = model_of("g (float[2] x) => (float[2] y) { y = Op(x, w) }");
      TensorProto& w = *model.mutable_graph()->add_initializer();
      w = counting("w", type, {2, 3}, raw);
      std::vector<double> requested = numbers_of(w);
      std::fill(requested.begin(), requested.begin() + 4, 0.0);
      if (type == TensorProto::BOOL) requested[3] = 1;
      Edit edit(model);
      edit.editor.zero_smallest("w", 4);
      onnx::ModelProto out = edit.written();
      EXPECT_EQ(numbers_of(initializer(out, "w")), requested) << "type " << type << " raw " << raw;
    }
  }
}

TEST(Editor, TiesFallToTheLowerIndex) {
  Edit edit(R"(g (float[2] x, float[6] w = {5, -1, 1, 0.5, -1, 7}) => (float[2] y) {
    y = Op (x, w) })");
  edit.editor.zero_smallest("w", 3);
  onnx::ModelProto out = edit.written();
  EXPECT_EQ(numbers_of(initializer(out, "w")), (std::vector<double>{5, 0, 0, 0, -1, 7}));
  EXPECT_EQ(error_of<ModelError>([&] { edit.editor.zero_smallest("w", 7); }),
            "tensor \"w\": cannot set 7 elements to zero: it has 6");
}

TEST(Editor, CopyGivesAConsumerItsOwnTensor) {
  onnx::ModelProto model = model_of(R"(<ir_version: 3, opset_import: ["" : 9]>
    g (float[2] x, float[2] w = {1, 2}) => (float[2] z) {
      v = Identity (w)
      y = Add (x, w)
      z = Add (y, v)
    })");
  Edit edit(model);
  edit.editor.copy("w_2", "w", "z", 1);
  edit.editor.slice("w", std::vector<AxisKeep>{{0, 2, {0}}});
  onnx::ModelProto out = edit.written();
  EXPECT_EQ(numbers_of(initializer(out, "w_2")), (std::vector<double>{1, 2}));
  EXPECT_EQ(numbers_of(initializer(out, "w")), (std::vector<double>{1}));
  ASSERT_EQ(out.graph().node_size(), 2) << "the Identity has no reader any more";
  EXPECT_EQ(out.graph().node(1).input(1), "w_2");
  EXPECT_EQ(out.graph().input(2).name(), "w_2") << "IR version 3 wants it among the inputs";
  EXPECT_EQ(error_of<ModelError>([&] { edit.editor.copy("y", "w", "z", 1); }),
            "tensor \"y\": cannot be added: the name is taken");
}

TEST(Editor, SetInputReplacesAConstantAndDropsTheOldOne) {
  Edit edit(R"(g (float[4] x, int64[1] shape = {4}) => (float[N] y, float[N] z) {
    other = Constant <value_ints = [4]> ()
    kept = Constant <value_ints = [4]> ()
    a = Reshape (x, shape)
    y = Reshape (a, other)
    z = Reshape (a, kept)
    w = If (y) < then_branch = t () => (int64[1] kept) { },
                 else_branch = e () => (int64[1] kept) { } >
  })");
  edit.editor.set_input("a", 1, HostTensor::vector({2}));
  edit.editor.set_input("y", 1, HostTensor::vector({2}));
  edit.editor.set_input("z", 1, HostTensor::vector({2}));
  edit.editor.set_input("z", 1, HostTensor::vector({3}));
  onnx::ModelProto out = edit.written();
  EXPECT_EQ(names_of(out.graph().initializer()),
            (std::vector<std::string>{"a_input1", "y_input1", "z_input1"}));
  EXPECT_EQ(numbers_of(initializer(out, "z_input1")), std::vector<double>{3});
  EXPECT_EQ(out.graph().node(0).output(0), "kept") << "a subgraph reads it";
  EXPECT_EQ(out.graph().node(1).input(1), "a_input1");
}

TEST(Editor, SetInputTakesEveryElementType) {
  const std::vector<double> floats = {1.5, -0.25, 0.0, 65504.0};
  for (const DType dtype : {DType::kFloat32, DType::kFloat64, DType::kFloat16}) {
    Edit edit("g (float[2] x) => (float[2] y) { y = Op(x) }");
    edit.editor.set_input("y", 2, HostTensor{dtype, {2, 2}, {}, floats});
    onnx::ModelProto out = edit.written();
    EXPECT_EQ(numbers_of(initializer(out, "y_input2")), floats);
    EXPECT_EQ(out.graph().node(0).input(1), "") << "absent between";
  }
  for (const DType dtype : {DType::kInt8, DType::kInt16, DType::kInt32, DType::kInt64,
                            DType::kUInt8, DType::kUInt16, DType::kUInt32, DType::kUInt64}) {
    Edit edit("g (float[2] x) => (float[2] y) { y = Op(x) }");
    edit.editor.set_input("y", 1, HostTensor::scalar(7, dtype));
    onnx::ModelProto out = edit.written();
    EXPECT_EQ(numbers_of(initializer(out, "y_input1")), std::vector<double>{7});
    EXPECT_EQ(initializer(out, "y_input1").dims_size(), 0);
  }
  Edit edit("g (float[2] x) => (float[2] y) { y = Op(x) }");
  const std::vector<double> halves = {1.0009765625 + 0x1p-11, 0x1p-24, 0x1p-26, 1e6};
  edit.editor.set_input("y", 1, HostTensor{DType::kFloat16, {4}, {}, halves});
  onnx::ModelProto out = edit.written();
  const std::vector<double> rounded = numbers_of(initializer(out, "y_input1"));
  EXPECT_EQ(rounded[0], 1.001953125) << "ties to even";
  EXPECT_EQ(rounded[1], 0x1p-24) << "smallest subnormal";
  EXPECT_EQ(rounded[2], 0.0);
  EXPECT_TRUE(std::isinf(rounded[3]));
}

TEST(Editor, SetsOneNumber) {
  Edit edit(R"(g (float[2] x) => (float[2] z) {
    y = LeakyRelu <alpha = 0.5> (x)
    z = Relu (y) })");
  edit.editor.set_number("y", "alpha", 0.25);
  edit.editor.set_number("z", "scale", 2);
  EXPECT_NE(error_of<ModelError>([&] { edit.editor.set_number("nobody", "alpha", 1); }), "");
  const std::vector<int64_t> two = {2};
  edit.editor.set_attribute("z", "group", two);
  EXPECT_NE(error_of<ModelError>([&] { edit.editor.set_number("z", "group", 1); }), "");
  const onnx::ModelProto out = edit.written();
  EXPECT_EQ(out.graph().node(0).attribute(0).f(), 0.25F);
  EXPECT_EQ(out.graph().node(1).attribute(0).f(), 2.0F);
  EXPECT_EQ(out.graph().node(1).attribute(0).type(), onnx::AttributeProto::FLOAT);
}

TEST(Editor, SetsIntegerAttributes) {
  Edit edit(R"(g (float[2] x) => (float[2] z) {
    y = Conv <group = 4, pads = [1, 1], auto_pad = "VALID"> (x, x)
    z = Conv (y, y) })");
  const std::vector<int64_t> two = {2};
  const std::vector<int64_t> pair = {3, 4};
  edit.editor.set_attribute("y", "group", two);
  edit.editor.set_attribute("y", "pads", pair);
  edit.editor.set_attribute("z", "group", two);
  edit.editor.set_attribute("z", "split", two);
  EXPECT_NE(error_of<ModelError>([&] { edit.editor.set_attribute("y", "group", pair); }), "");
  EXPECT_NE(error_of<ModelError>([&] { edit.editor.set_attribute("y", "auto_pad", two); }), "");
  const onnx::ModelProto out = edit.written();
  const auto& y = out.graph().node(0);
  const auto& z = out.graph().node(1);
  EXPECT_EQ(y.attribute(0).i(), 2);
  EXPECT_EQ(y.attribute(1).ints(1), 4);
  EXPECT_EQ(z.attribute(0).i(), 2);
  EXPECT_EQ(z.attribute(0).type(), onnx::AttributeProto::INT);
  EXPECT_EQ(z.attribute(1).type(), onnx::AttributeProto::INTS);
  EXPECT_EQ(z.attribute(1).ints(0), 2);
}

TEST(Editor, UpdatesDeclaredShapesThatChanged) {
  onnx::ModelProto model = model_of(R"(g (float[1, 8] x) => (float[N, 8] y) <float[1, 8] a> {
    a = Relu (x)
    y = Relu (a) })");
  Edit edit(model);
  edit.editor.update_shapes([](std::string_view) { return ShapeChange{{5, 8}, {5, 6}}; });
  const onnx::ModelProto out = edit.written();
  const auto& a = out.graph().value_info(0).type().tensor_type().shape();
  EXPECT_EQ(a.dim(0).dim_value(), 1) << "not what changed";
  EXPECT_EQ(a.dim(1).dim_value(), 6);
  const auto& y = out.graph().output(0).type().tensor_type().shape();
  EXPECT_EQ(y.dim(0).dim_param(), "N");
  EXPECT_EQ(y.dim(1).dim_value(), 6);
}

TEST(Editor, NamesWhatIsNotThere) {
  Edit edit(R"(g (float[2] x, float[2] weight = {1, 2}) => (float[2] conv_out) {
    conv_out = Add (x, weight) })");
  const std::vector<int64_t> one = {1};
  EXPECT_EQ(error_of<ModelError>([&] { edit.editor.slice("weigth", {}); }),
            "the model has no tensor \"weigth\". Did you mean \"weight\"?");
  EXPECT_EQ(error_of<ModelError>([&] { edit.editor.set_attribute("conv_ot", "group", one); }),
            "the model has no node whose first output is \"conv_ot\". Did you mean \"conv_out\"?");
  EXPECT_EQ(error_of<ModelError>([&] { edit.editor.copy("w2", "weight", "conv_out", 2); }),
            "node \"conv_out\": no input 2, it has 2");
  EXPECT_FALSE(edit.file.edited());
}

/// A body's reads leave with the node that owns it, each once.
TEST(Editor, WhatABodyThatLeavesHasReadStays) {
  Edit edit(R"(net (float[2] x, bool c) => (float[2] y) {
    z = Neg(x)
    m = If (c) < then_branch = t () => (float[2] o) { r = Relu(z) o = Abs(r) },
                 else_branch = e () => (float[2] p) { p = Exp(z) } >
    a = Sigmoid(z)
    b = Mul(a, m)
    s = Add(a, b)
    y = Tanh(s)
  })");
  edit.editor.bypass({{{"s", 0}}});
  const onnx::ModelProto out = edit.written();
  std::vector<std::string> left;
  for (const auto& node : out.graph().node()) left.push_back(node.op_type());
  EXPECT_EQ(left, (std::vector<std::string>{"Neg", "Sigmoid", "Tanh"}));
}

}  // namespace
}  // namespace parsimony::onnx_io::test
