// Large elements stay in the model's own file while it is read and edited.
#include <gtest/gtest.h>

#include "parsimony/base/errors.h"
#include "parsimony/base/ranges.h"
#include "parsimony/onnx_io/editor.h"
#include "parsimony/onnx_io/reader.h"
#include "tests/onnx_io/fixture.h"

namespace parsimony::onnx_io::test {
namespace {

namespace fs = std::filesystem;
using onnx::TensorProto;

constexpr int64_t kLongAxis = 6000;

/// m.onnx with large u and w, of which w is not in raw bytes, four bits wide p, and small v.
struct Embedding {
  TemporaryFolder folder;
  std::string path = folder / "m.onnx";
  onnx::ModelProto model = model_of("g (float[2] x) => (float[2] y) { y = Op(x, u, v, w, p) }");

  Embedding() {
    add(counting("u", TensorProto::FLOAT, {kLongAxis, 3}, true)).set_doc_string("many");
    add(counting("v", TensorProto::INT64, {5}, true));
    add(counting("w", TensorProto::FLOAT, {kLongAxis, 3}, false));
    TensorProto packed;
    packed.set_name("p");
    packed.set_data_type(22);  // int4
    packed.add_dims(10 * kLongAxis);
    packed.set_raw_data(std::string(5 * kLongAxis, '\x21'));  // 1, 2, 1, 2, …
    add(packed);
    save(model, path);
  }

  TensorProto& add(const TensorProto& tensor) {
    return *model.mutable_graph()->add_initializer() = tensor;
  }
};

std::vector<double> first_numbers(const ModelFile& file, const std::string& name, int64_t count) {
  const Graph graph = to_graph(file);
  const HostTensor host = to_host(weight_of(graph, name));
  std::vector<double> result;
  for (int64_t i = 0; i < std::min(count, host.count()); ++i) result.push_back(host.number(i));
  return result;
}

/// Are the bytes those that protobuf writes?
void expect_canonical(const std::string& path) {
  onnx::ModelProto model;
  ASSERT_TRUE(model.ParseFromString(bytes_of(path)));
  EXPECT_EQ(model.SerializeAsString(), bytes_of(path));
}

TEST(Embedded, LargeElementsStayInTheFile) {
  const Embedding model;
  const ModelFile file(model.path);
  const Graph graph = to_graph(file);
  EXPECT_TRUE(file.is_mapped(weight_of(graph, "u")));
  EXPECT_FALSE(file.is_mapped(weight_of(graph, "v")));
  EXPECT_FALSE(file.is_mapped(weight_of(graph, "w")));
  EXPECT_FALSE(file.has_data_beside());
  EXPECT_TRUE(file.data_files().empty());
  EXPECT_EQ(first_numbers(file, "u", 3), (std::vector<double>{1, -2, 3}));
  EXPECT_EQ(first_numbers(file, "p", 3), (std::vector<double>{1, 2, 1}));
}

TEST(Embedded, EditsAreWrittenInside) {
  const Embedding model;
  ModelFile file(model.path);
  OnnxEditor editor(file);
  editor.copy("u_2", "u", "y", 0);
  editor.slice("u", std::vector<AxisKeep>{{0, kLongAxis, {3, kLongAxis - 1}}, {1, 3, {0, 2}}});
  editor.slice("p", std::vector<AxisKeep>{{0, 10 * kLongAxis, {1, 2, 3}}});
  editor.zero_smallest("u_2", 2);
  const std::string out = model.folder / "small.onnx";
  const int64_t bytes = file.write(out);
  EXPECT_EQ(bytes, std::ssize(bytes_of(out)));
  EXPECT_FALSE(fs::exists(out + ".data"));
  const ModelFile small(out);
  EXPECT_EQ(first_numbers(small, "u", 9),
            (std::vector<double>{-10, -12, 1 - 3 * kLongAxis + 1, -3 * kLongAxis}));
  EXPECT_EQ(first_numbers(small, "u_2", 3), (std::vector<double>{0, 0, 3}));
  EXPECT_EQ(first_numbers(small, "p", 9), (std::vector<double>{2, 1, 2}));
  EXPECT_EQ(first_numbers(small, "w", 2), (std::vector<double>{1, -2}));
  expect_canonical(out);
  const std::string before = bytes_of(out);
  file.write(out);
  EXPECT_EQ(bytes_of(out), before) << "writing does not disturb the model";
}

TEST(Embedded, UneditedElementsAreWrittenAsTheyAre) {
  const Embedding model;
  ModelFile file(model.path);
  OnnxEditor(file).slice("v", std::vector<AxisKeep>{{0, 5, {0, 1, 2, 3, 4}}});
  file.write(model.folder / "same.onnx");
  EXPECT_EQ(bytes_of(model.folder / "same.onnx"), bytes_of(model.path));
}

TEST(Embedded, TheFileItselfCanBeReplaced) {
  const Embedding model;
  ModelFile file(model.path);
  OnnxEditor(file).slice("u", std::vector<AxisKeep>{{0, kLongAxis, successive(1, kLongAxis)}});
  file.write(model.path);
  EXPECT_EQ(first_numbers(ModelFile(model.path), "u", 2), (std::vector<double>{-4, 5}));
  OnnxEditor(file).slice("u", std::vector<AxisKeep>{{0, kLongAxis - 1, {0}}});
  file.write(model.path);
  EXPECT_EQ(first_numbers(ModelFile(model.path), "u", 2), (std::vector<double>{-4, 5}));
}

TEST(Embedded, ForReadersThatMapTheyAreWrittenBeside) {
  const Embedding model;
  ModelFile file(model.path);
  OnnxEditor(file).slice("u", std::vector<AxisKeep>{{1, 3, {1}}});
  const std::string out = model.folder / "run.onnx";
  file.write_beside(out);
  EXPECT_EQ(bytes_of(out + ".data").size(),
            kLongAxis * 4u / 64 * 64 + 64 * (kLongAxis * 4u % 64 > 0) + 5u * kLongAxis);
  const ModelFile run(out);
  EXPECT_EQ(first_numbers(run, "u", 2), (std::vector<double>{-2, 5}));
  EXPECT_EQ(first_numbers(run, "p", 2), (std::vector<double>{1, 2}));
  EXPECT_TRUE(run.has_data_beside());
  file.write(model.folder / "inside.onnx");
  expect_canonical(model.folder / "inside.onnx");
}

TEST(Embedded, AssignedElementsAreThoseOfTheModel) {
  const Embedding model;
  ModelFile file(model.path);
  OnnxEditor editor(file);
  editor.slice("u", std::vector<AxisKeep>{{0, kLongAxis, {0}}});
  const std::vector<float> values = {7, 8, 9};
  editor.assign("u", std::as_bytes(std::span(values)));
  file.write(model.folder / "small.onnx");
  EXPECT_EQ(first_numbers(ModelFile(model.folder / "small.onnx"), "u", 9),
            (std::vector<double>{7, 8, 9}));
  expect_canonical(model.folder / "small.onnx");
}

TEST(Embedded, TwoOfANameAreOneIfTheyAreEqual) {
  Embedding model;
  TensorProto again = model.model.graph().initializer(0);
  again.clear_doc_string();
  model.add(again);
  save(model.model, model.path);
  EXPECT_EQ(first_numbers(ModelFile(model.path), "u", 2), (std::vector<double>{1, -2}));
  (*model.model.mutable_graph()->mutable_initializer(4)->mutable_raw_data())[0] = 'x';
  save(model.model, model.path);
  EXPECT_THROW(to_graph(ModelFile(model.path)), ModelError);
}

TEST(Embedded, NoTruncatedFileIsTakenForAModel) {
  const Embedding model;
  const std::string whole = bytes_of(model.path);
  for (size_t size = 1000; size < whole.size(); size += 1000) {
    write_bytes(model.path, whole.substr(0, size));
    const std::string message = error_of<ModelError>([&] { const ModelFile file(model.path); });
    ASSERT_EQ(message.find(model.path + ": truncated or damaged: "), 0u) << size << ": " << message;
  }
}

TEST(Embedded, NoFileMayNameItself) {
  Embedding model;
  for (const bool in_node : {false, true}) {
    onnx::ModelProto crafted = model.model;
    onnx::NodeProto& node = *crafted.mutable_graph()->mutable_node(0);
    TensorProto& tensor = in_node ? *node.add_attribute()->mutable_t()
                                  : *crafted.mutable_graph()->mutable_initializer(1);
    tensor.set_data_location(TensorProto::EXTERNAL);
    onnx::StringStringEntryProto& entry = *tensor.add_external_data();
    entry.set_key("location");
    entry.set_value(std::string(1, '\0'));
    save(crafted, model.path);
    EXPECT_EQ(error_of<ModelError>([&] { const ModelFile file(model.path); }),
              model.path + ": a tensor's external data location is not a file name");
  }
}

TEST(Embedded, UnknownGroupsStay) {
  const Embedding model;
  const std::string group = "\xa3\x06\xa4\x06";  // field 100
  write_bytes(model.path, bytes_of(model.path) + group);
  ModelFile file(model.path);
  OnnxEditor(file).slice("u", std::vector<AxisKeep>{{0, kLongAxis, {0}}});
  file.write(model.folder / "small.onnx");
  EXPECT_TRUE(bytes_of(model.folder / "small.onnx").ends_with(group));
}

TEST(Embedded, DimsMustFitTheElements) {
  Embedding model;
  model.model.mutable_graph()->mutable_initializer(0)->set_dims(1, 4);
  save(model.model, model.path);
  EXPECT_EQ(
      error_of<ModelError>([&] { to_graph(ModelFile(model.path)); }),
      model.path +
          ": tensor \"u\": wrong dims: [6000, 4] of float32 need 96000 bytes of data, found 72000");
}

}  // namespace
}  // namespace parsimony::onnx_io::test
