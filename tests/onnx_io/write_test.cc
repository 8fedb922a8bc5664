#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>

#include "parsimony/base/errors.h"
#include "parsimony/onnx_io/editor.h"
#include "parsimony/onnx_io/reader.h"
#include "tests/onnx_io/fixture.h"

namespace parsimony::onnx_io::test {
namespace {

namespace fs = std::filesystem;

onnx::ModelProto large_model() {
  onnx::ModelProto model = model_of("g (float[2] x) => (float[2] y) { y = Op(x, w) }");
  *model.mutable_graph()->add_initializer() =
      counting("w", onnx::TensorProto::FLOAT, {1000, 10}, true);
  return model;
}

/// The disk takes no more than `bytes` per file for as long as this lives.
class SmallDisk {
 public:
  explicit SmallDisk(rlim_t bytes) {
    old_handler_ = std::signal(SIGXFSZ, SIG_IGN);
    ::getrlimit(RLIMIT_FSIZE, &old_);
    rlimit limit = old_;
    limit.rlim_cur = bytes;
    ::setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~SmallDisk() {
    ::setrlimit(RLIMIT_FSIZE, &old_);
    std::signal(SIGXFSZ, old_handler_);
  }
  SmallDisk(const SmallDisk&) = delete;
  SmallDisk& operator=(const SmallDisk&) = delete;

 private:
  rlimit old_{};
  void (*old_handler_)(int) = nullptr;
};

TEST(Write, UneditedModelComesOutByteForByte) {
  const TemporaryFolder folder;
  save(large_model(), folder / "m.onnx");
  std::string bytes = bytes_of(folder / "m.onnx");
  ASSERT_EQ(bytes.substr(0, 2), "\x08\x08");
  // An 8 in two bytes: protobuf itself would write one.
  bytes.replace(1, 1, std::string("\x88\x00", 2));
  write_bytes(folder / "m.onnx", bytes);
  ModelFile file(folder / "m.onnx");
  const OnnxEditor editor(file);
  file.write(folder / "out.onnx");
  EXPECT_EQ(bytes_of(folder / "out.onnx"), bytes);
  file.write(folder / "m.onnx");
  EXPECT_EQ(bytes_of(folder / "m.onnx"), bytes);
  EXPECT_EQ(folder.names(), (std::vector<std::string>{"m.onnx", "out.onnx"}));
}

TEST(Write, ChecksumIsSha256) {
  const TemporaryFolder folder;
  onnx::ModelProto model = model_of("g (float[2] x) => (float[2] y) { y = Relu(x) }");
  save(model, folder / "m.onnx");
  const std::string first = ModelFile(folder / "m.onnx").sha256();
  EXPECT_EQ(first.size(), 64u);
  EXPECT_EQ(first.find_first_not_of("0123456789abcdef"), std::string::npos);
  model.set_doc_string("other");
  save(model, folder / "m.onnx");
  EXPECT_NE(ModelFile(folder / "m.onnx").sha256(), first);
}

TEST(Write, FullDiskLeavesTheOldFileWhole) {
  const TemporaryFolder folder;
  save(large_model(), folder / "m.onnx");
  write_bytes(folder / "out.onnx", "old");
  ModelFile file(folder / "m.onnx");
  OnnxEditor editor(file);
  for (const bool edited : {false, true}) {
    if (edited) editor.slice("w", std::vector<AxisKeep>{{1, 10, {0, 1, 2, 3, 4, 5, 6, 7}}});
    {
      const SmallDisk disk(20'000);
      EXPECT_EQ(error_of<IoError>([&] { file.write(folder / "out.onnx"); }),
                (folder / "out.onnx") + ": cannot be written: File too large");
    }
    EXPECT_EQ(bytes_of(folder / "out.onnx"), "old");
    EXPECT_EQ(folder.names(), (std::vector<std::string>{"m.onnx", "out.onnx"}));
  }
  file.write(folder / "out.onnx");
  EXPECT_EQ(load(folder / "out.onnx").graph().initializer(0).dims(1), 8);
}

TEST(Write, FullDiskWhileTheMessageItselfIsLarge) {
  const TemporaryFolder folder;
  onnx::ModelProto model = model_of("g (float[2] x) => (float[2] y) { y = Op(x, w, v) }");
  auto& tensors = *model.mutable_graph()->mutable_initializer();
  *tensors.Add() = counting("w", onnx::TensorProto::FLOAT, {600'000, 3}, /*raw=*/false);
  *tensors.Add() = counting("v", onnx::TensorProto::FLOAT, {2}, /*raw=*/true);
  save(model, folder / "m.onnx");
  ModelFile file(folder / "m.onnx");
  OnnxEditor(file).slice("v", std::vector<AxisKeep>{{0, 2, {0}}});
  {
    const SmallDisk disk(20'000);
    EXPECT_EQ(error_of<IoError>([&] { file.write(folder / "out.onnx"); }),
              (folder / "out.onnx") + ": cannot be written: File too large");
  }
  EXPECT_EQ(folder.names(), std::vector<std::string>{"m.onnx"});
  file.write(folder / "out.onnx");
  EXPECT_EQ(load(folder / "out.onnx").graph().initializer(0).float_data_size(), 1'800'000);
}

TEST(Write, FullDiskWithExternalDataLeavesBothFilesWhole) {
  const TemporaryFolder folder;
  onnx::ModelProto model = large_model();
  make_external(initializer(model, "w"), folder / "weights.bin", "weights.bin");
  save(model, folder / "m.onnx");
  write_bytes(folder / "out.onnx", "old");
  write_bytes(folder / "out.onnx.data", "old data");
  ModelFile file(folder / "m.onnx");
  OnnxEditor editor(file);
  editor.slice("w", std::vector<AxisKeep>{{1, 10, {0, 1, 2, 3, 4, 5, 6, 7}}});
  {
    const SmallDisk disk(20'000);
    EXPECT_NE(error_of<IoError>([&] { file.write(folder / "out.onnx"); }), "");
  }
  EXPECT_EQ(bytes_of(folder / "out.onnx"), "old");
  EXPECT_EQ(bytes_of(folder / "out.onnx.data"), "old data");
  EXPECT_EQ(folder.names().size(), 4u);
}

TEST(Write, TargetsThatAreNoFiles) {
  const TemporaryFolder folder;
  save(large_model(), folder / "m.onnx");
  ModelFile file(folder / "m.onnx");
  EXPECT_EQ(error_of<IoError>([&] { file.write("/dev/full"); }),
            "/dev/full: cannot be written: it exists and is not a regular file");
  EXPECT_NE(error_of<IoError>([&] { file.write(folder / "gone/out.onnx"); }), "");
  fs::create_symlink("real.onnx", folder / "link.onnx");
  write_bytes(folder / "real.onnx", "old");
  file.write(folder / "link.onnx");
  EXPECT_TRUE(fs::is_symlink(folder / "link.onnx"));
  EXPECT_EQ(bytes_of(folder / "real.onnx"), bytes_of(folder / "m.onnx"));
}

/// P1 and P9 over real files.
TEST(Write, RealModelsComeOutAsTheyWentIn) {
  const char* data = std::getenv("PARSIMONY_TEST_DATA");
  const fs::path models = fs::path(data == nullptr ? "" : data) / "models" / "onnx";
  if (data == nullptr || !fs::exists(models)) {
    GTEST_SKIP() << "no real models: set PARSIMONY_TEST_DATA to the folder that holds them";
  }
  const TemporaryFolder folder;
  int seen = 0;
  for (const auto& entry : fs::directory_iterator(models)) {
    const std::string path = entry.path().string();
    if (entry.path().extension() != ".onnx") continue;
    ++seen;
    ModelFile file(path);
    const Graph graph = to_graph(file);
    EXPECT_FALSE(graph.nodes.empty()) << path;
    file.write(folder / "out.onnx");
    EXPECT_EQ(bytes_of(folder / "out.onnx"), bytes_of(path)) << path;

    // Written by way of the message: the bytes may differ, what they say may not.
    OnnxEditor editor(file);
    const auto weight = std::find_if(graph.weights.begin(), graph.weights.end(),
                                     [](const Weight& w) { return w.dims.size() >= 2; });
    ASSERT_NE(weight, graph.weights.end()) << path;
    editor.slice(weight->name, {});
    file.write(folder / "out.onnx");
    EXPECT_EQ(load(folder / "out.onnx").SerializeAsString(), load(path).SerializeAsString())
        << path;
  }
  EXPECT_GT(seen, 0);
}

}  // namespace
}  // namespace parsimony::onnx_io::test
