#include <gtest/gtest.h>

#include <cstdlib>

#include "parsimony/base/errors.h"
#include "parsimony/onnx_io/editor.h"
#include "parsimony/onnx_io/reader.h"
#include "tests/onnx_io/fixture.h"

namespace parsimony::onnx_io::test {
namespace {

using onnx::TensorProto;

constexpr const char* kGood = R"(g (float[2] x) => (float[2] y) { y = Relu(x) })";

class BadInput : public ::testing::Test {
 protected:
  std::string path() const { return folder_ / "m.onnx"; }

  /// What reading `model` complains about.
  template <typename E = ModelError>
  std::string complaint(const onnx::ModelProto& model) const {
    save(model, path());
    return complaint<E>();
  }
  template <typename E = ModelError>
  std::string complaint() const {
    return error_of<E>([&] { to_graph(ModelFile(path())); });
  }
  template <typename E = ModelError>
  std::string complaint(const std::string& text) const {
    return complaint<E>(model_of(text));
  }

  TemporaryFolder folder_;
};

TEST_F(BadInput, MissingFileAndFolder) {
  EXPECT_EQ(complaint<IoError>(), path() + ": cannot be read: No such file or directory");
  const std::string folder = folder_ / ".";
  EXPECT_EQ(error_of<IoError>([&] { ModelFile file(folder); }),
            folder + ": cannot be read: not a regular file");
}

TEST_F(BadInput, GarbageAndEmptyFile) {
  write_bytes(path(), "");
  EXPECT_EQ(complaint(), path() + ": not an ONNX model");
  write_bytes(path(), "\x89PNG\r\n\x1a\n and then some");
  EXPECT_EQ(complaint(), path() + ": not an ONNX model");
  write_bytes(path(), std::string(1000, '\xff'));
  EXPECT_EQ(complaint(), path() + ": not an ONNX model");
}

TEST_F(BadInput, NoTruncatedFileIsTakenForAModel) {
  onnx::ModelProto model = model_of(kGood);
  *model.mutable_graph()->add_initializer() = counting("w", TensorProto::FLOAT, {64}, true);
  const std::string whole = model.SerializeAsString();
  for (size_t size = 1; size < whole.size(); ++size) {
    write_bytes(path(), whole.substr(0, size));
    const std::string message = complaint();
    ASSERT_NE(message, "") << size << " of " << whole.size();
    ASSERT_EQ(message.find(path() + ": "), 0u) << message;
  }
  write_bytes(path(), whole.substr(0, whole.size() / 2));
  EXPECT_NE(complaint().find("truncated or damaged: reading stopped at byte "), std::string::npos);
}

TEST_F(BadInput, NoGraphNoNodes) {
  onnx::ModelProto model = model_of(kGood);
  model.clear_graph();
  EXPECT_EQ(complaint(model), path() + ": not an ONNX model: it has no graph");
  model.mutable_graph()->set_name("g");
  EXPECT_EQ(complaint(model), path() + ": the graph is empty: it has no nodes");
  model = model_of(kGood);
  model.mutable_graph()->clear_output();
  EXPECT_EQ(complaint(model), path() + ": the graph has no outputs: it computes nothing");
}

TEST_F(BadInput, VersionsOutsideOfTheRange) {
  onnx::ModelProto model = model_of(kGood);
  model.mutable_opset_import(0)->set_version(29);
  EXPECT_EQ(complaint<UnsupportedError>(model),
            path() +
                ": opset 29: expected 7 to 28; convert the model with onnx.version_converter or "
                "export it again");
  model.mutable_opset_import(0)->set_version(6);
  EXPECT_NE(complaint<UnsupportedError>(model), "");
  model.mutable_opset_import(0)->set_version(28);
  EXPECT_NO_THROW({
    save(model, path());
    ModelFile file(path());
  });
  model.set_ir_version(99);
  EXPECT_NE(complaint<UnsupportedError>(model).find("IR version 99: expected 1 to 14"),
            std::string::npos);
  model.set_ir_version(8);
  model.clear_opset_import();
  EXPECT_NE(complaint(model).find("does not say which opset"), std::string::npos);
}

TEST_F(BadInput, NamesWithoutOrigin) {
  EXPECT_EQ(complaint("g (float[2] x) => (float[2] y) { y = Add(x, gone) }"),
            path() +
                ": node \"y\": tensor \"gone\" is neither a graph input, nor an initializer, nor "
                "the output of a node");
  EXPECT_EQ(complaint("g (float[2] x) => (float[2] z) { y = Relu(x) }"),
            path() +
                ": graph output \"z\" is neither a graph input, nor an initializer, nor the output "
                "of a node");
  EXPECT_NE(complaint(R"(g (bool c) => (float[2] y) {
              y = If (c) < then_branch = t () => (float[2] o) { o = Relu(gone) },
                           else_branch = e () => (float[2] p) { p = Relu(gone) } > })")
                .find("tensor \"gone\""),
            std::string::npos);
}

TEST_F(BadInput, NamesWithTwoOrigins) {
  EXPECT_NE(complaint("g (float[2] x) => (float[2] y) { y = Relu(x) y = Neg(x) }").find("\"y\""),
            std::string::npos);
  EXPECT_NE(complaint("g (float[2] x) => (float[2] y) { x = Relu(x) y = Neg(x) }").find("\"x\""),
            std::string::npos);
  EXPECT_EQ(complaint("g (float[2] x, float[2] x) => (float[2] y) { y = Neg(x) }"),
            path() + ": graph input \"x\" is defined twice: names of values must be unique");
  onnx::ModelProto model = model_of(kGood);
  *model.mutable_graph()->add_initializer() = counting("w", TensorProto::FLOAT, {1}, true);
  *model.mutable_graph()->add_initializer() = counting("w", TensorProto::FLOAT, {2}, true);
  EXPECT_EQ(complaint(model),
            path() + ": initializer \"w\" is defined twice: names of values must be unique");
  EXPECT_NE(complaint(R"(g (float[2] x, float[2] w = {1, 2}) => (float[2] y) {
              x = Identity(w)
              y = Relu(x) })"),
            "");
}

TEST_F(BadInput, Cycles) {
  EXPECT_NE(complaint("g (float[2] x) => (float[2] y) { y = Add(x, z) z = Relu(y) }").find("cycle"),
            std::string::npos);
  EXPECT_NE(
      complaint("g (float[2] x) => (float[2] y) { y = Identity(z) z = Identity(y) }").find("cycle"),
      std::string::npos);
}

TEST_F(BadInput, DataThatDoesNotFitTheDims) {
  onnx::ModelProto model = model_of(kGood);
  TensorProto& w = *model.mutable_graph()->add_initializer();
  w = counting("w", TensorProto::FLOAT, {2, 3}, true);
  w.set_dims(0, 3);
  EXPECT_EQ(
      complaint(model),
      path() + ": tensor \"w\": wrong dims: [3, 3] of float32 need 36 bytes of data, found 24");
  w.set_dims(0, -2);
  EXPECT_NE(complaint(model).find("tensor \"w\": wrong dims [-2, 3]"), std::string::npos);
  w.set_dims(0, int64_t{1} << 40);
  EXPECT_NE(complaint(model).find("[1099511627776, 3]"), std::string::npos);
  w.set_dims(1, int64_t{1} << 40);
  EXPECT_NE(complaint(model).find("tensor \"w\": wrong dims"), std::string::npos);
  w = counting("w", TensorProto::FLOAT16, {5}, false);
  w.set_dims(0, 6);
  EXPECT_EQ(complaint(model),
            path() + ": tensor \"w\": wrong dims: [6] of float16 need 12 bytes of data, found 10");
  w = counting("w", TensorProto::FLOAT, {2}, true);
  w.mutable_raw_data()->pop_back();
  EXPECT_EQ(complaint(model),
            path() + ": tensor \"w\": wrong dims: [2] of float32 need 8 bytes of data, found 7");
}

TEST_F(BadInput, ExternalDataOutsideOfTheFolder) {
  const std::string secret = folder_ / "secret.bin";
  write_bytes(secret, std::string(100, 's'));
  std::filesystem::create_directory(folder_ / "model");
  const std::string path = folder_ / "model/m.onnx";
  std::filesystem::create_symlink("../secret.bin", folder_ / "model/link.bin");
  onnx::ModelProto model = model_of(kGood);
  TensorProto& w = *model.mutable_graph()->add_initializer();
  w = counting("w", TensorProto::FLOAT, {2}, true);
  make_external(w, folder_ / "model/w.bin", "w.bin");
  const auto complaint_at = [&](const std::string& location) {
    w.mutable_external_data(0)->set_value(location);
    save(model, path);
    return error_of<ModelError>([&] { to_graph(ModelFile(path)); });
  };
  EXPECT_EQ(complaint_at("w.bin"), "");
  EXPECT_NE(complaint_at(secret).find("is absolute"), std::string::npos);
  EXPECT_NE(complaint_at("../secret.bin").find("leaves the model's folder"), std::string::npos);
  EXPECT_NE(complaint_at("../model/w.bin").find("leaves the model's folder"), std::string::npos);
  EXPECT_NE(complaint_at("link.bin").find("link that leaves"), std::string::npos);
  EXPECT_NE(complaint_at("").find("is missing"), std::string::npos);
  w.mutable_external_data(0)->set_value("gone.bin");
  save(model, path);
  EXPECT_NE(error_of<IoError>([&] { to_graph(ModelFile(path)); }).find("gone.bin"),
            std::string::npos);
}

TEST_F(BadInput, ExternalDataThatIsTooShort) {
  onnx::ModelProto model = model_of(kGood);
  TensorProto& w = *model.mutable_graph()->add_initializer();
  w = counting("w", TensorProto::FLOAT, {2, 2}, true);
  make_external(w, folder_ / "w.bin", "w.bin");
  auto& offset = *w.mutable_external_data(1);
  offset.set_value("1");
  EXPECT_EQ(
      complaint(model),
      path() +
          ": tensor \"w\": external data: expected 16 bytes from offset 1 of \"w.bin\", found "
          "a file of 16 bytes");
  offset.set_value("9223372036854775807");
  EXPECT_NE(complaint(model).find("external data: expected 16 bytes"), std::string::npos);
  offset.set_value("-1");
  EXPECT_NE(complaint(model).find("offset \"-1\" is not a number of bytes"), std::string::npos);
  offset.set_value("0");
  w.set_dims(0, 3);
  EXPECT_NE(complaint(model).find("[3, 2] of float32 need 24 bytes of data, found 16"),
            std::string::npos);
}

TEST_F(BadInput, EditorRefusesWhatHasNoNumbers) {
  onnx::ModelProto model = model_of("g (float[2] x) => (float[2] y) { y = Op(x, w, v) }");
  TensorProto& w = *model.mutable_graph()->add_initializer();
  w = counting("w", TensorProto::UINT8, {4}, true);
  w.set_data_type(24);  // FLOAT8E8M0
  TensorProto& v = *model.mutable_graph()->add_initializer();
  v = counting("v", TensorProto::FLOAT, {4}, true);
  v.set_dims(0, 400);
  save(model, path());
  ModelFile file(path());
  OnnxEditor editor(file);
  EXPECT_EQ(error_of<ModelError>([&] { editor.zero_smallest("w", 1); }),
            "tensor \"w\": cannot be edited: it is not a dense tensor of numbers");
  EXPECT_EQ(error_of<ModelError>([&] {
              editor.slice("v", std::vector<AxisKeep>{{0, 400, {399}}});
            }),
            "tensor \"v\": wrong dims: [400] of float32 need 1600 bytes of data, found 16");
}

}  // namespace
}  // namespace parsimony::onnx_io::test
