#include <gtest/gtest.h>

#include <filesystem>

#include "parsimony/base/errors.h"
#include "parsimony/base/files.h"
#include "parsimony/masks/mask.h"

namespace parsimony {
namespace {

std::string file_of(const std::string& header, const std::string& data) {
  std::string bytes;
  for (int i = 0; i < 8; ++i) bytes += static_cast<char>(header.size() >> (8 * i) & 0xff);
  return bytes + header + data;
}

std::string error_of(const std::string& bytes) {
  try {
    parse_masks(bytes, "m.safetensors");
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

std::string temporary(const std::string& name) {
  return (std::filesystem::temp_directory_path() / name).string();
}

TEST(Safetensors, WritesTheDocumentedBytes) {
  const std::string path = temporary("parsimony_masks_bytes.safetensors");
  write_masks(path, {{"b", {2}, {1, 0}}, {"a", {1, 1}, {1}}});
  const std::string bytes = read_file(path);
  std::filesystem::remove(path);
  const std::string header = R"({"__metadata__":{"format":"parsimony"},)"
                             R"("a":{"data_offsets":[0,1],"dtype":"BOOL","shape":[1,1]},)"
                             R"("b":{"data_offsets":[1,3],"dtype":"BOOL","shape":[2]}})";
  EXPECT_EQ(bytes.substr(8, header.size()), header);
  EXPECT_EQ((bytes.size() - 3) % 8, 0U);
  EXPECT_EQ(bytes.substr(bytes.size() - 3), std::string("\1\1\0", 3));
}

TEST(Safetensors, ReadsWhatItWrote) {
  const std::string path = temporary("parsimony_masks_round.safetensors");
  const std::vector<ElementMask> masks = {
      {"a", {}, {1}}, {"conv \"1\"", {2, 2}, {1, 0, 0, 1}}, {"empty", {3, 0}, {}}};
  write_masks(path, masks);
  EXPECT_EQ(read_masks(path), masks);
  std::filesystem::remove(path);
}

TEST(Safetensors, ReadsOtherTypes) {
  const std::string header = R"({"f":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},)"
                             R"("h":{"dtype":"F16","shape":[2],"data_offsets":[8,12]},)"
                             R"("i":{"dtype":"I16","shape":[2],"data_offsets":[12,16]}})";
  const std::string data(
      "\0\0\0\x80\0\0\x80\x3f"
      "\0\0\1\0"
      "\0\x80\0\0",
      16);
  const std::vector<ElementMask> masks = parse_masks(file_of(header, data), "m");
  ASSERT_EQ(masks.size(), 3U);
  EXPECT_EQ(masks[0].keep, (std::vector<uint8_t>{0, 1}));  // -0.0, 1.0
  EXPECT_EQ(masks[1].keep, (std::vector<uint8_t>{0, 1}));  // 0, a subnormal
  EXPECT_EQ(masks[2].keep, (std::vector<uint8_t>{1, 0}));  // -32768, 0
}

TEST(Safetensors, RefusesNamesThatTheFormatCannotHold) {
  const std::string path = temporary("parsimony_masks_bad.safetensors");
  const ElementMask mask{"a", {1}, {1}};
  EXPECT_THROW(write_masks(path, {mask, mask}), ModelError);
  EXPECT_THROW(write_masks(path, {{"__metadata__", {1}, {1}}}), ModelError);
  EXPECT_THROW(write_masks(path, {{"\xff", {1}, {1}}}), ModelError);
  EXPECT_FALSE(std::filesystem::exists(path));
}

TEST(Safetensors, SaysWhatIsWrongWithAFile) {
  EXPECT_EQ(error_of("abc"), "m.safetensors: not a safetensors file: it has no header");
  const std::string too_long =
      "m.safetensors: not a safetensors file: its header is longer than the file or than 100 MB";
  EXPECT_EQ(error_of(std::string(8, '\xff') + "{}"), too_long);
  EXPECT_EQ(error_of(std::string("\3\0\0\0\0\0\0\0{}", 10)), too_long);
  EXPECT_EQ(
      error_of(file_of("{", "")),
      "m.safetensors: header:1:2: not JSON: syntax error while parsing object key - unexpected end "
      "of input; expected string literal");
  EXPECT_EQ(error_of(file_of("[]", "")), "m.safetensors: header: found a list, expected an object");
  EXPECT_EQ(error_of(file_of("{}", "x")),
            "m.safetensors: not a safetensors file: there are bytes behind the last tensor");
  EXPECT_EQ(error_of(file_of(R"({"a":{"dtype":"BOOL","shape":[-1],"data_offsets":[0,1]}})", "x")),
            "m.safetensors: header: a.shape[0]: found -1, expected an integer from 0 to "
            "4611686018427387904");
  EXPECT_EQ(error_of(file_of(R"({"a":1,"a":1})", "")),
            "m.safetensors: header: key \"a\" occurs twice in one object");
  EXPECT_EQ(
      error_of(file_of(R"({"a":{"dtype":"F8_E4M3","shape":[],"data_offsets":[0,1]}})", "x")),
      "m.safetensors: tensor \"a\": elements of type \"F8_E4M3\" are not read; expected BOOL, an "
      "integer type, F16, BF16, F32 or F64");
}

TEST(Safetensors, ChecksSizesBeforeAnyAllocation) {
  const std::string huge = R"({"a":{"dtype":"F64","shape":[1099511627776,1099511627776],)"
                           R"("data_offsets":[0,8]}})";
  EXPECT_EQ(error_of(file_of(huge, "12345678")),
            "m.safetensors: tensor \"a\": its shape does not fit its data_offsets");
  const std::string outside = R"({"a":{"dtype":"BOOL","shape":[8],"data_offsets":[0,8]}})";
  EXPECT_EQ(error_of(file_of(outside, "1")),
            "m.safetensors: tensor \"a\": its data_offsets lie outside of the file");
}

TEST(Safetensors, RefusesHolesAndOverlaps) {
  const auto two = [](const std::string& first, const std::string& second) {
    return file_of(R"({"a":{"dtype":"U8","shape":[2],"data_offsets":)" + first +
                       R"(},"b":{"dtype":"U8","shape":[2],"data_offsets":)" + second + "}}",
                   "1234");
  };
  EXPECT_EQ(error_of(two("[0,2]", "[2,4]")), "no error");
  EXPECT_EQ(error_of(two("[2,4]", "[0,2]")), "no error");
  EXPECT_EQ(error_of(two("[0,2]", "[1,3]")),
            "m.safetensors: tensor \"b\": its data overlaps that of another tensor");
  EXPECT_EQ(error_of(two("[1,3]", "[2,4]")),
            "m.safetensors: tensor \"a\": there is a gap before its data");
}

TEST(Safetensors, ReportsFilesThatCannotBeOpened) {
  EXPECT_THROW(read_masks("/no/such/file"), IoError);
  EXPECT_THROW(write_masks("/no/such/folder/m", {}), IoError);
}

}  // namespace
}  // namespace parsimony
