#include "parsimony/checkpoints/checkpoint.h"

#include <gtest/gtest.h>

#include <cstring>

#include "parsimony/base/errors.h"
#include "parsimony/base/files.h"
#include "parsimony/checkpoints/cut.h"
#include "parsimony/checkpoints/zip.h"
#include "parsimony/masks/tensor_file.h"
#include "tests/support/same_bytes.h"
#include "tests/support/temporary_folder.h"

namespace parsimony {
namespace {

using namespace std::string_literals;  // NOLINT(google-build-using-namespace)

std::vector<float> floats_of(const Checkpoint& checkpoint, TensorId id) {
  const StoredValues values = checkpoint.values(id);
  std::vector<float> floats(values.bytes().size() / sizeof(float));
  std::memcpy(floats.data(), values.bytes().data(), values.bytes().size());
  return floats;
}

/// What torch.save writes for {"w": tensor}: `shape` and `stride` are pickled tuples.
std::string pickle_of(const std::string& shape, const std::string& stride, int elements) {
  return "\x80\x02}q\0X\x01\0\0\0wq\x01"
         "ctorch._utils\n_rebuild_tensor_v2\nq\x02"
         "((X\x07\0\0\0storageq\x03"
         "ctorch\nFloatStorage\nq\x04X\x01\0\0\0"
         "0q\x05X\x03\0\0\0cpuq\x06K"s +
         static_cast<char>(elements) + "tq\x07QK\0"s + shape + "q\x08" + stride +
         "q\x09\x89"
         "ccollections\nOrderedDict\nq\x0a)Rq\x0btq\x0cRq\x0ds."s;
}

std::string save(const test::TemporaryFolder& folder, const std::string& pickle,
                 const std::vector<float>& values) {
  const std::string path = folder / "a.pth";
  NewFile file(path);
  ZipWriter zip(file);
  zip.add("a/data.pkl", pickle);
  zip.add("a/data/0", {reinterpret_cast<const char*>(values.data()), 4 * values.size()});
  zip.add("a/version", "3\n");
  zip.finish();
  file.commit();
  return path;
}

TEST(Checkpoint, IsCutInPlaceOfItsStorage) {
  const test::TemporaryFolder folder;
  const std::string path =
      save(folder, pickle_of("K\x02K\x03\x86", "K\x03K\x01\x86", 6), {0, 1, 2, 10, 11, 12});
  EXPECT_TRUE(is_checkpoint(path));
  const auto checkpoint = open_checkpoint(path);
  ASSERT_EQ(checkpoint->tensors().size(), 1U);
  const TensorId id(0);
  EXPECT_EQ(checkpoint->tensors()[id].path, std::vector<std::string>{"w"});
  EXPECT_EQ(floats_of(*checkpoint, id), (std::vector<float>{0, 1, 2, 10, 11, 12}));
  checkpoint->write(folder / "same.pth");
  EXPECT_TRUE(test::same_bytes(read_file(folder / "same.pth"), read_file(path)));

  checkpoint->cut(id, {{1, 3, {0, 2}}});
  checkpoint->write(folder / "b.pth");
  const auto cut = open_checkpoint(folder / "b.pth");
  EXPECT_EQ(cut->tensors()[id].dims, (Shape{2, 2}));
  EXPECT_EQ(floats_of(*cut, id), (std::vector<float>{0, 2, 10, 12}));
  EXPECT_EQ(cut->globals().names, checkpoint->globals().names);
  EXPECT_TRUE(cut->globals().refused.empty());
}

TEST(Checkpoint, KeepsTheOrderInWhichElementsLie) {
  const test::TemporaryFolder folder;
  // Columns first: element (i, k) is i + 2 k.
  const std::string path =
      save(folder, pickle_of("K\x02K\x03\x86", "K\x01K\x02\x86", 6), {0, 10, 1, 11, 2, 12});
  const auto checkpoint = open_checkpoint(path);
  EXPECT_EQ(floats_of(*checkpoint, TensorId(0)), (std::vector<float>{0, 1, 2, 10, 11, 12}));
  checkpoint->cut(TensorId(0), {{1, 3, {1, 2}}});
  checkpoint->write(folder / "b.pth");
  const auto cut = open_checkpoint(folder / "b.pth");
  EXPECT_EQ(cut->tensors()[TensorId(0)].strides, (std::vector<int64_t>{1, 2}));
  EXPECT_EQ(floats_of(*cut, TensorId(0)), (std::vector<float>{1, 2, 11, 12}));
}

TEST(Checkpoint, RefusesTensorsBeyondTheirStorage) {
  const test::TemporaryFolder folder;
  const auto refused = [&](const std::string& shape, const std::string& stride, int elements,
                           size_t stored) {
    const std::string path =
        save(folder, pickle_of(shape, stride, elements), std::vector<float>(stored));
    EXPECT_THROW(open_checkpoint(path), ModelError) << shape << stride;
  };
  refused("K\x02K\x04\x86", "K\x04K\x01\x86", 6, 6);              // more than there are
  refused("K\x02K\x03\x86", "K\x03K\x01\x86", 6, 5);              // a storage that is cut off
  refused("K\x02K\x03\x86", "K\x03\x85", 6, 6);                   // fewer strides
  refused("K\x02K\x03\x86", "J\xff\xff\xff\xffK\x01\x86", 6, 6);  // negative
  refused("J\xff\xff\xff\xffK\x01\x86", "K\x03K\x01\x86", 6, 6);
  refused("J\xff\xff\xff\x7fJ\xff\xff\xff\x7f\x86", "J\xff\xff\xff\x7fJ\xff\xff\xff\x7f\x86", 6, 6);
  refused("NN\x86", "K\x03K\x01\x86", 6, 6);
}

TEST(Checkpoint, DamagedArchivesAreNamed) {
  const test::TemporaryFolder folder;
  const std::string path =
      save(folder, pickle_of("K\x06\x85", "K\x01\x85", 6), std::vector<float>(6));
  const std::string bytes = read_file(path);
  for (size_t size = 0; size < bytes.size(); size += 7) {
    write_file(path, bytes.substr(0, size));
    EXPECT_THROW(open_checkpoint(path), ModelError) << size;
  }
}

TEST(Checkpoint, AModelIsNone) {
  const test::TemporaryFolder folder;
  write_file(folder / "a.onnx", "\x08\x08\x12\x0bpytorch{...."s);
  write_file(folder / "b.onnx",
             "\x08\x08\x12\x06"
             "torc{..:\x02\x12\0"s);  // '{' is byte 8
  EXPECT_FALSE(is_checkpoint(folder / "a.onnx"));
  EXPECT_FALSE(is_checkpoint(folder / "b.onnx"));
}

TEST(Checkpoint, SafetensorsKeepOrderAndMetadata) {
  const test::TemporaryFolder folder;
  const std::vector<float> values = {1, 2, 3, 4};
  const auto* data = reinterpret_cast<const std::byte*>(values.data());
  write_tensors(folder / "a.safetensors", {{"w", DType::kFloat32, {2, 2}, {data, data + 16}},
                                           {"v", DType::kInt8, {4}, {data, data + 4}}});
  const auto checkpoint = open_checkpoint(folder / "a.safetensors");
  EXPECT_EQ(checkpoint->format(), "safetensors");
  checkpoint->cut(TensorId(1), {{0, 2, {1}}});
  checkpoint->write(folder / "b.safetensors");
  const std::string bytes = read_file(folder / "b.safetensors");
  const std::vector<FileTensor> tensors = parse_tensors(bytes, "b");
  EXPECT_EQ(tensors[1].dims, (Shape{1, 2}));
  EXPECT_EQ(std::memcmp(tensors[1].data.data(), values.data() + 2, 8), 0);
  EXPECT_NE(bytes.find(R"("format":"parsimony")"), std::string::npos);
}

/// The lowest byte of the length of its header is the first byte of a pickle.
TEST(Checkpoint, SafetensorsMayBeginLikeAPickle) {
  const test::TemporaryFolder folder;
  std::string header = R"({"w":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})";
  header.resize(0x180, ' ');
  write_file(folder / "a.safetensors", "\x80\x01\0\0\0\0\0\0"s + header + "\0\0\x80\x3f"s);
  const auto checkpoint = open_checkpoint(folder / "a.safetensors");
  EXPECT_EQ(checkpoint->format(), "safetensors");
  EXPECT_EQ(floats_of(*checkpoint, TensorId(0)), (std::vector<float>{1}));
}

TEST(Checkpoint, ADirectoryIsCutByNamesAndAppearsWhole) {
  const test::TemporaryFolder folder;
  const std::vector<float> values = {1, 2, 3, 4};
  const auto* data = reinterpret_cast<const std::byte*>(values.data());
  std::filesystem::create_directory(folder / "in");
  write_tensors(folder / "in/model.safetensors",
                {{"a.w", DType::kFloat32, {2, 2}, {data, data + 16}},
                 {"b.w", DType::kFloat32, {4}, {data, data + 16}}});
  write_file(folder / "in/config.json", "{\"size\": 2}");
  write_file(folder / "in/LICENSE", "text");
  Plan plan;
  plan.groups = {{"g0", 2, 1, "channel", false, {{"a.w", 0, Role::kOut, 2, {1}}}}};
  plan.files = {{"config.json", "{\"size\": 1}"}};

  const auto checkpoint = open_checkpoint(folder / "in");
  const auto match = match_names(plan, *checkpoint);
  ASSERT_TRUE(match);
  EXPECT_EQ(match->copies.front().prefix, "model.safetensors.");
  EXPECT_EQ(cut_checkpoint(plan, *match, true, *checkpoint).tensors, 1);
  checkpoint->write(folder / "out");
  EXPECT_EQ(read_file(folder / "out/config.json"), "{\"size\": 1}");
  EXPECT_EQ(read_file(folder / "out/LICENSE"), "text");
  const auto small = open_checkpoint(folder / "out");
  EXPECT_EQ(floats_of(*small, TensorId(0)), (std::vector<float>{3, 4}));
  EXPECT_EQ(floats_of(*small, TensorId(1)), values);

  const auto bare = open_checkpoint(folder / "in/model.safetensors");
  EXPECT_THROW(cut_checkpoint(plan, *match_names(plan, *bare), true, *bare), UnsupportedError);
  plan.groups.front().slices.front().tensor = "c.w";
  EXPECT_FALSE(match_names(plan, *checkpoint));
}

TEST(Checkpoint, TensorsAndFilesOfADirectoryLeave) {
  const test::TemporaryFolder folder;
  const std::vector<float> values = {1, 2, 3, 4};
  const auto* data = reinterpret_cast<const std::byte*>(values.data());
  std::filesystem::create_directory(folder / "in");
  for (const std::string name : {"0", "1", "2"}) {
    write_tensors(folder / ("in/" + name + ".safetensors"),
                  {{"layers." + name + ".w", DType::kFloat32, {4}, {data, data + 16}}});
  }
  write_file(
      folder / "in/model.safetensors.index.json",
      R"({"metadata": {"total_size": 48}, "weight_map": {"layers.0.w": "0.safetensors", "layers.1.w": "1.safetensors", "layers.2.w": "2.safetensors"}})");
  write_file(folder / "in/tokenizer.model", "text");
  Plan plan;
  plan.files = {{"tokenizer.model", std::nullopt}};
  plan.groups = {{"g0", 4, 1, "channel", false, {{"layers.2.w", 0, Role::kOut, 4, {3}}}}};
  plan.renamings = {{"layers.1.w", ""}, {"layers.2.w", "layers.1.w"}};

  const auto checkpoint = open_checkpoint(folder / "in");
  const auto match = match_names(plan, *checkpoint);
  ASSERT_TRUE(match);
  EXPECT_EQ(cut_checkpoint(plan, *match, true, *checkpoint).tensors, 1);
  checkpoint->write(folder / "out");
  EXPECT_FALSE(std::filesystem::exists(folder / "out/tokenizer.model"));
  EXPECT_FALSE(std::filesystem::exists(folder / "out/1.safetensors"));
  const auto small = open_checkpoint(folder / "out/model.safetensors.index.json");
  ASSERT_EQ(small->tensors().size(), 2U);
  EXPECT_EQ(dotted_name(small->tensors()[TensorId(1)]), "layers.1.w");
  EXPECT_EQ(floats_of(*small, TensorId(1)), (std::vector<float>{4}));
  EXPECT_NE(read_file(folder / "out/model.safetensors.index.json").find("\"total_size\":20"),
            std::string::npos);
  plan.renamings.push_back({"layers.0.w", "layers.1.w"});
  EXPECT_THROW(cut_checkpoint(plan, *match, true, *open_checkpoint(folder / "in")), ConfigError);
}

TEST(Checkpoint, ShardsAreOne) {
  const test::TemporaryFolder folder;
  const std::vector<float> values = {1, 2, 3, 4};
  const auto* data = reinterpret_cast<const std::byte*>(values.data());
  std::filesystem::create_directory(folder / "out");
  write_tensors(folder / "1.safetensors", {{"w", DType::kFloat32, {2, 2}, {data, data + 16}}});
  write_tensors(folder / "2.safetensors", {{"v", DType::kFloat32, {4}, {data, data + 16}}});
  write_file(
      folder / "m.index.json",
      R"({"metadata": {"total_size": 32}, "weight_map": {"w": "1.safetensors", "v": "2.safetensors"}})");
  const auto checkpoint = open_checkpoint(folder / "m.index.json");
  ASSERT_EQ(checkpoint->tensors().size(), 2U);
  checkpoint->cut(TensorId(0), {{1, 2, {0}}});
  EXPECT_THROW(checkpoint->write(folder / "n.index.json"), ConfigError);
  checkpoint->write(folder / "out/m.index.json");
  const auto cut = open_checkpoint(folder / "out/m.index.json");
  EXPECT_EQ(floats_of(*cut, TensorId(0)), (std::vector<float>{1, 3}));
  EXPECT_NE(read_file(folder / "out/m.index.json").find(R"("total_size": 24)"), std::string::npos);
  write_file(folder / "m.index.json", R"({"weight_map": {"w": "../1.safetensors"}})");
  EXPECT_THROW(open_checkpoint(folder / "m.index.json"), ModelError);
  write_file(folder / "m.index.json", R"({"weight_map": {"x": "1.safetensors"}})");
  EXPECT_THROW(open_checkpoint(folder / "m.index.json"), ModelError);
}

/// Transposed, repeated along an outer and an inner axis, with single elements between, from behind
/// the beginning, empty, and of a rank that no program has.
TEST(Values, OfViewsAreThoseOfTheirAxes) {
  std::string bytes(12, '\0');
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<char>(i);
  const auto values = [&](Shape dims, std::vector<int64_t> strides, int64_t offset = 0) {
    const StoredTensor view{.path = {"x"},
                            .type = element_type_of_name("int8"),
                            .dims = std::move(dims),
                            .strides = std::move(strides),
                            .offset = offset};
    const StoredValues found = values_in(view, bytes, "file");
    std::vector<int> numbers;
    for (const std::byte one : found.bytes()) numbers.push_back(static_cast<int>(one));
    return numbers;
  };
  EXPECT_EQ(values({2, 3}, {1, 2}), (std::vector<int>{0, 2, 4, 1, 3, 5}));
  EXPECT_EQ(values({3, 2}, {0, 1}, 4), (std::vector<int>{4, 5, 4, 5, 4, 5}));
  EXPECT_EQ(values({2, 1, 3}, {5, 7, 0}), (std::vector<int>{0, 0, 0, 5, 5, 5}));
  EXPECT_EQ(values({2, 2, 2}, {1, 0, 4}), (std::vector<int>{0, 4, 0, 4, 1, 5, 1, 5}));
  EXPECT_EQ(values({1, 5}, {3, 0}, 11), (std::vector<int>{11, 11, 11, 11, 11}));
  EXPECT_EQ(values({3, 0}, {1, 9}), std::vector<int>());
  EXPECT_EQ(values(Shape(1000000, 1), std::vector<int64_t>(1000000, 2), 6), std::vector<int>{6});
}

}  // namespace
}  // namespace parsimony
