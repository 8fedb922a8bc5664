#include "parsimony/onnx_io/external_data.h"

#include <gtest/gtest.h>

#include "parsimony/base/errors.h"
#include "parsimony/onnx_io/editor.h"
#include "parsimony/onnx_io/reader.h"
#include "tests/onnx_io/fixture.h"

namespace parsimony::onnx_io::test {
namespace {

namespace fs = std::filesystem;
using onnx::TensorProto;

/// m.onnx with u, v and w in m.onnx.data; v and w are one and the same range.
struct External {
  TemporaryFolder folder;
  std::string path = folder / "m.onnx";
  std::string data = folder / "m.onnx.data";

  External() {
    onnx::ModelProto model = model_of("g (float[2] x) => (float[2] y) { y = Op(x, u, v, w) }");
    onnx::GraphProto& graph = *model.mutable_graph();
    write_bytes(data, "odd");  // so that nothing is aligned
    TensorProto& u = *graph.add_initializer();
    u = counting("u", TensorProto::FLOAT, {400, 3}, true);
    make_external(u, data, "m.onnx.data");
    TensorProto& v = *graph.add_initializer();
    v = counting("v", TensorProto::INT64, {5}, true);
    make_external(v, data, "m.onnx.data");
    TensorProto& w = *graph.add_initializer();
    w = v;
    w.set_name("w");
    save(model, path);
  }
};

std::vector<double> numbers(const Graph& graph, const std::string& name) {
  const HostTensor host = to_host(weight_of(graph, name));
  std::vector<double> result;
  for (int64_t i = 0; i < host.count(); ++i) result.push_back(host.number(i));
  return result;
}

TEST(ExternalData, IsMapped) {
  const External model;
  const ModelFile file(model.path);
  const Graph graph = to_graph(file);
  EXPECT_EQ(numbers(graph, "v"), (std::vector<double>{1, -2, 3, -4, 5}));
  EXPECT_EQ(numbers(graph, "w"), (std::vector<double>{1, -2, 3, -4, 5}));
  graph.source->release(weight_of(graph, "u"));
  EXPECT_EQ(numbers(graph, "u")[1], -2) << "readable after release";
}

TEST(ExternalData, UneditedModelKeepsItsBytes) {
  const External model;
  const std::string model_bytes = bytes_of(model.path);
  const std::string data_bytes = bytes_of(model.data);
  ModelFile file(model.path);
  file.write(model.folder / "same.onnx");
  EXPECT_EQ(bytes_of(model.folder / "same.onnx"), model_bytes);
  fs::create_directory(model.folder / "other");
  file.write(model.folder / "other/m.onnx");
  EXPECT_EQ(bytes_of(model.folder / "other/m.onnx"), model_bytes);
  EXPECT_EQ(bytes_of(model.folder / "other/m.onnx.data"), data_bytes);
  file.write(model.folder / "other/m.onnx");
  EXPECT_EQ(bytes_of(model.folder / "other/m.onnx"), model_bytes) << "and again";
}

TEST(ExternalData, UneditedModelDoesNotOverwriteSomebodyElsesData) {
  const External model;
  ModelFile file(model.path);
  fs::create_directory(model.folder / "other");
  write_bytes(model.folder / "other/m.onnx.data", "somebody else's");
  file.write(model.folder / "other/copy.onnx");
  EXPECT_EQ(bytes_of(model.folder / "other/m.onnx.data"), "somebody else's");
  const ModelFile copy(model.folder / "other/copy.onnx");
  EXPECT_EQ(numbers(to_graph(copy), "v"), (std::vector<double>{1, -2, 3, -4, 5}));
}

TEST(ExternalData, TheDataIsNoPlaceForTheModel) {
  const External model;
  const std::string data_bytes = bytes_of(model.data);
  ModelFile file(model.path);
  EXPECT_THROW(file.write(model.data), IoError);
  const Graph graph = to_graph(file);
  EXPECT_EQ(file.data_files(), std::vector<std::string>{model.data});
  OnnxEditor(file).slice("u", std::vector<AxisKeep>{{0, 400, {3, 399}}});
  EXPECT_THROW(file.write(model.data), IoError);
  EXPECT_EQ(bytes_of(model.data), data_bytes);
}

TEST(ExternalData, EditsAreWrittenToANewFile) {
  const External model;
  const std::string data_bytes = bytes_of(model.data);
  ModelFile file(model.path);
  OnnxEditor editor(file);
  editor.slice("u", std::vector<AxisKeep>{{0, 400, {3, 399}}, {1, 3, {0, 2}}});
  EXPECT_EQ(numbers(to_graph(file), "u"), (std::vector<double>{-10, -12, -1198, -1200}));
  const std::string out = model.folder / "small.onnx";
  file.write(out);
  EXPECT_EQ(bytes_of(model.data), data_bytes);
  const ModelFile small(out);
  const Graph graph = to_graph(small);
  EXPECT_EQ(numbers(graph, "u"), (std::vector<double>{-10, -12, -1198, -1200}));
  EXPECT_EQ(numbers(graph, "v"), (std::vector<double>{1, -2, 3, -4, 5}));
  EXPECT_EQ(weight_of(graph, "v").data, weight_of(graph, "w").data) << "still one range";
  EXPECT_EQ(bytes_of(model.folder / "small.onnx.data").size(), 64u + 5 * 8);
  const std::string first = bytes_of(out);
  file.write(out);
  EXPECT_EQ(bytes_of(out), first) << "writing does not disturb the model";
}

TEST(ExternalData, SlicesAndZerosInAnyOrder) {
  const External model;
  const std::vector<AxisKeep> even = {{0, 5, {0, 2, 4}}};
  ModelFile file(model.path);
  OnnxEditor editor(file);
  editor.copy("v_2", "v", "y", 0);
  editor.zero_smallest("v", 2);
  editor.slice("v", even);
  editor.slice("v", std::vector<AxisKeep>{{0, 3, {1, 2}}});
  editor.slice("w", even);
  editor.zero_smallest("w", 1);
  editor.zero_smallest("w", 2);
  EXPECT_EQ(numbers(to_graph(file), "w"), (std::vector<double>{0, 0, 5}));
  file.write(model.folder / "small.onnx");
  const ModelFile small(model.folder / "small.onnx");
  const Graph graph = to_graph(small);
  EXPECT_EQ(numbers(graph, "v"), (std::vector<double>{3, 5}));
  EXPECT_EQ(numbers(graph, "w"), (std::vector<double>{0, 0, 5}));
  EXPECT_EQ(numbers(graph, "v_2"), (std::vector<double>{1, -2, 3, -4, 5}));
}

TEST(ExternalData, WhatAnEditLeavesCanBeMadeRowByRow) {
  const External model;
  ModelFile file(model.path);
  OnnxEditor editor(file);
  editor.slice("u", std::vector<AxisKeep>{{0, 400, {3, 7, 399}}, {1, 3, {0, 2}}});
  editor.zero_smallest("v", 2);
  const Graph graph = to_graph(file, EditedData::kLazy);
  const auto rows = [&](const std::string& name, int64_t first, int64_t count) {
    Weight weight = weight_of(graph, name);
    EXPECT_EQ(weight.data, nullptr);
    EXPECT_TRUE(file.is_mapped(weight));
    const std::vector<std::byte> made = graph.source->make(weight, first, count);
    weight.dims[0] = count;
    weight.data = made.data();
    EXPECT_EQ(static_cast<int64_t>(made.size()), weight.count() * weight.stride);
    const HostTensor host = to_host(weight);
    std::vector<double> result;
    for (int64_t i = 0; i < host.count(); ++i) result.push_back(host.number(i));
    return result;
  };
  EXPECT_EQ(rows("u", 0, 3), (std::vector<double>{-10, -12, -22, -24, -1198, -1200}));
  EXPECT_EQ(rows("u", 1, 1), (std::vector<double>{-22, -24}));
  EXPECT_EQ(rows("v", 1, 3), (std::vector<double>{0, 3, -4})) << "of the smallest two one is here";
  EXPECT_EQ(numbers(graph, "w"), (std::vector<double>{1, -2, 3, -4, 5})) << "as it lies";
}

TEST(ExternalData, AssignedTensorsMoveIntoTheModel) {
  const External model;
  ModelFile file(model.path);
  OnnxEditor editor(file);
  editor.slice("v", std::vector<AxisKeep>{{0, 5, {0, 2}}});
  const std::vector<int64_t> values = {7, 8};
  editor.assign("v", std::as_bytes(std::span(values)));
  file.write(model.folder / "small.onnx");
  const ModelFile small(model.folder / "small.onnx");
  EXPECT_EQ(numbers(to_graph(small), "v"), (std::vector<double>{7, 8}));
  EXPECT_EQ(numbers(to_graph(small), "w"), (std::vector<double>{1, -2, 3, -4, 5}));
}

TEST(ExternalData, LargerThanTheBuffers) {
  const External model;
  onnx::ModelProto proto = load(model.path);
  TensorProto& big = *proto.mutable_graph()->add_initializer();
  big = counting("big", TensorProto::INT32, {3, 1 << 20}, true);
  make_external(big, model.data, "m.onnx.data");
  save(proto, model.path);
  ModelFile file(model.path);
  OnnxEditor editor(file);
  AxisKeep axis{1, 1 << 20, {}};
  for (int64_t i = 1; i < axis.size; ++i) axis.keep.push_back(i);
  editor.slice("big", {&axis, 1});
  editor.zero_smallest("big", 1'500'000);
  file.write(model.folder / "small.onnx");
  const ModelFile small(model.folder / "small.onnx");
  const std::vector<double> kept = numbers(to_graph(small), "big");
  ASSERT_EQ(kept.size(), 3u * ((1 << 20) - 1));
  int64_t wrong = 0;
  for (size_t i = 0; i < kept.size(); ++i) {
    const size_t original = i + i / ((1 << 20) - 1) + 1;
    const double number =
        original % 2 == 1 ? -static_cast<double>(original) - 1 : static_cast<double>(original) + 1;
    wrong += kept[i] != (i < 1'500'000 ? 0 : number) ? 1 : 0;
  }
  EXPECT_EQ(wrong, 0);
}

TEST(ExternalData, TheModelItselfCanBeTheTarget) {
  const External model;
  ModelFile file(model.path);
  OnnxEditor editor(file);
  editor.slice("v", std::vector<AxisKeep>{{0, 5, {1}}});
  file.write(model.path);
  const ModelFile small(model.path);
  EXPECT_EQ(numbers(to_graph(small), "v"), std::vector<double>{-2});
  EXPECT_EQ(model.folder.names(), (std::vector<std::string>{"m.onnx", "m.onnx.1.data"}))
      << "the old data went after the new were in place";
  file.write(model.folder / "again.onnx");
  const ModelFile again(model.folder / "again.onnx");
  EXPECT_EQ(numbers(to_graph(again), "v"), std::vector<double>{-2})
      << "what is open still reads the old data";
}

TEST(ExternalData, FilesOfOtherNamesStayWhenTheModelIsReplaced) {
  const TemporaryFolder folder;
  onnx::ModelProto proto = model_of("g (float[2] x) => (float[2] y) { y = Op(x, w) }");
  onnx::TensorProto& w = *proto.mutable_graph()->add_initializer();
  w = counting("w", TensorProto::FLOAT, {5}, true);
  make_external(w, folder / "shared.bin", "shared.bin");
  save(proto, folder / "m.onnx");
  ModelFile file(folder / "m.onnx");
  OnnxEditor editor(file);
  editor.slice("w", std::vector<AxisKeep>{{0, 5, {1}}});
  file.write(folder / "m.onnx");
  EXPECT_EQ(folder.names(), (std::vector<std::string>{"m.onnx", "m.onnx.data", "shared.bin"}));
}

/// snapshots/1/m.onnx -> blobs/aa, and its data -> blobs/bb.
TEST(ExternalData, LinksOfAHubLeadToOneFolder) {
  namespace fs = std::filesystem;
  const TemporaryFolder folder;
  fs::create_directories(folder / "blobs");
  fs::create_directories(folder / "snapshots/1");
  onnx::ModelProto proto = model_of("g (float[2] x) => (float[2] y) { y = Op(x, w) }");
  onnx::TensorProto& w = *proto.mutable_graph()->add_initializer();
  w = counting("w", TensorProto::FLOAT, {5}, true);
  make_external(w, folder / "blobs/bb", "m.onnx_data");
  save(proto, folder / "blobs/aa");
  fs::create_symlink("../../blobs/aa", folder / "snapshots/1/m.onnx");
  fs::create_symlink("../../blobs/bb", folder / "snapshots/1/m.onnx_data");
  const ModelFile file(folder / "snapshots/1/m.onnx");
  EXPECT_EQ(numbers(to_graph(file), "w"), (std::vector<double>{1, -2, 3, -4, 5}));

  fs::rename(folder / "blobs/bb", folder / "bb");
  fs::remove(folder / "snapshots/1/m.onnx_data");
  fs::create_symlink("../../bb", folder / "snapshots/1/m.onnx_data");
  EXPECT_NE(error_of<ModelError>([&] {
              to_graph(ModelFile(folder / "snapshots/1/m.onnx"));
            }).find("link that leaves"),
            std::string::npos)
      << "elsewhere it is refused";
}

}  // namespace
}  // namespace parsimony::onnx_io::test
