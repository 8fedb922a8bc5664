// Elements of fewer than 8 bits share bytes in the file, and are cut one by one.
#include <gtest/gtest.h>

#include "parsimony/base/errors.h"
#include "parsimony/onnx_io/editor.h"
#include "parsimony/onnx_io/reader.h"
#include "parsimony/onnx_io/tensor_impl.h"
#include "tests/onnx_io/fixture.h"

namespace parsimony::onnx_io::test {
namespace {

using onnx::TensorProto;

constexpr int kInt4 = 22;  // older versions of onnx.proto have no name for it

std::vector<std::byte> bytes(std::initializer_list<int> numbers) {
  std::vector<std::byte> result;
  for (const int number : numbers) result.push_back(static_cast<std::byte>(number));
  return result;
}

TEST(Packed, TheFirstElementLiesInTheLowestBits) {
  const auto nibbles = bytes({0x21, 0xf8, 0x07});
  EXPECT_EQ(unpacked(nibbles.data(), 1, DType::kUInt4, 5), bytes({1, 2, 8, 15, 7}));
  EXPECT_EQ(unpacked(nibbles.data(), 1, DType::kInt4, 5), bytes({1, 2, -8, -1, 7}));
  EXPECT_EQ(unpacked(nibbles.data(), 1, DType::kInt2, 5), bytes({1, 0, -2, 0, 0}));
  EXPECT_EQ(packed(bytes({1, 2, -8, -1, 7}), DType::kInt4), nibbles);
  EXPECT_EQ(packed(bytes({3, 0, 2, 1, 1}), DType::kUInt2), bytes({0x63, 0x01}));
  EXPECT_EQ(file_bytes(DType::kUInt4, 5), 3);
  EXPECT_EQ(file_bytes(DType::kUInt2, 5), 2);
  EXPECT_EQ(file_bytes(DType::kFloat16, 5), 10);
}

enum class Place { kRaw, kTyped, kExternal };

/// [3, 3]: 1 2 3, -4 -5 -6, 7 0 -8.
struct Model {
  TemporaryFolder folder;

  explicit Model(Place place) {
    onnx::ModelProto model = model_of("g (float[2] x) => (float[2] y) { y = Op(x, w) }");
    TensorProto& w = *model.mutable_graph()->add_initializer();
    w.set_name("w");
    w.set_data_type(kInt4);
    w.add_dims(3);
    w.add_dims(3);
    const std::string with_zero("\x21\xc3\xab\x07\x08", 5);
    if (place == Place::kTyped) {
      for (const char byte : with_zero) w.add_int32_data(static_cast<uint8_t>(byte));
    } else {
      w.set_raw_data(with_zero);
    }
    if (place == Place::kExternal) make_external(w, folder / "m.onnx.data", "m.onnx.data");
    save(model, folder / "m.onnx");
  }
};

std::vector<int64_t> elements(const Graph& graph) { return to_host(weight_of(graph, "w")).ints; }

class PackedModels : public testing::TestWithParam<Place> {
 protected:
  const Model model_{GetParam()};
  ModelFile file_{model_.folder / "m.onnx"};

  /// As the edited model in memory has them, and as the file that is written.
  std::vector<int64_t> edited() {
    const std::vector<int64_t> before = elements(to_graph(file_));
    file_.write(model_.folder / "out.onnx");
    const ModelFile out(model_.folder / "out.onnx");
    EXPECT_EQ(elements(to_graph(out)), before);
    return before;
  }
};

TEST_P(PackedModels, AreRead) {
  EXPECT_EQ(elements(to_graph(file_)), (std::vector<int64_t>{1, 2, 3, -4, -5, -6, 7, 0, -8}));
}

TEST_P(PackedModels, AreCutAlongAnyAxis) {
  OnnxEditor editor(file_);
  editor.slice("w", std::vector<AxisKeep>{{1, 3, {0, 2}}});
  EXPECT_EQ(edited(), (std::vector<int64_t>{1, 3, -4, -6, 7, -8}));
  editor.slice("w", std::vector<AxisKeep>{{0, 3, {2}}, {1, 2, {0}}});
  EXPECT_EQ(edited(), (std::vector<int64_t>{7}));
}

TEST_P(PackedModels, LoseTheirSmallestElements) {
  OnnxEditor editor(file_);
  editor.zero_smallest("w", 4);
  EXPECT_EQ(edited(), (std::vector<int64_t>{0, 0, 0, -4, -5, -6, 7, 0, -8}));
}

TEST_P(PackedModels, TakeOtherElements) {
  OnnxEditor editor(file_);
  editor.assign("w", bytes({0, 1, 2, 3, 4, 5, 6, 7, -8}));
  EXPECT_EQ(edited(), (std::vector<int64_t>{0, 1, 2, 3, 4, 5, 6, 7, -8}));
}

INSTANTIATE_TEST_SUITE_P(Places, PackedModels,
                         testing::Values(Place::kRaw, Place::kTyped, Place::kExternal));

TEST(Packed, DataOfAnotherSizeAreRefused) {
  onnx::ModelProto model = model_of("g (float[2] x) => (float[2] y) { y = Op(x, w) }");
  TensorProto& w = *model.mutable_graph()->add_initializer();
  w.set_name("w");
  w.set_data_type(kInt4);
  w.add_dims(5);
  w.set_raw_data("12");
  const TemporaryFolder folder;
  save(model, folder / "m.onnx");
  const ModelFile file(folder / "m.onnx");
  EXPECT_NE(error_of<ModelError>([&] { to_graph(file); }), "");
}

}  // namespace
}  // namespace parsimony::onnx_io::test
