// Folders of images.
#include <gtest/gtest.h>
#include <jpeglib.h>
#include <png.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <set>

#include "parsimony/base/errors.h"
#include "parsimony/base/files.h"
#include "parsimony/data/image.h"
#include "parsimony/data/sample_source.h"
#include "tests/data/data_files.h"
#include "tests/graph/builder.h"
#include "tests/support/arrays.h"
#include "tests/support/message_of.h"
#include "tests/support/temporary_folder.h"

namespace parsimony::test {
namespace {

/// [height, width, channels] by a function of y, x and c.
using Painter = std::function<int(int64_t y, int64_t x, int64_t c)>;

std::vector<uint8_t> paint(int64_t height, int64_t width, int64_t channels,
                           const Painter& painter) {
  std::vector<uint8_t> pixels;
  for (int64_t y = 0; y < height; ++y) {
    for (int64_t x = 0; x < width; ++x) {
      for (int64_t c = 0; c < channels; ++c) {
        pixels.push_back(static_cast<uint8_t>(painter(y, x, c)));
      }
    }
  }
  return pixels;
}

std::string png(int64_t height, int64_t width, uint32_t format, const void* pixels) {
  png_image image{};
  image.version = PNG_IMAGE_VERSION;
  image.width = static_cast<png_uint_32>(width);
  image.height = static_cast<png_uint_32>(height);
  image.format = format;
  png_alloc_size_t size = 0;
  png_image_write_to_memory(&image, nullptr, &size, 0, pixels, 0, nullptr);
  std::string bytes(size, '\0');
  png_image_write_to_memory(&image, bytes.data(), &size, 0, pixels, 0, nullptr);
  bytes.resize(size);
  return bytes;
}

std::string rgb_png(int64_t height, int64_t width, const Painter& painter) {
  return png(height, width, PNG_FORMAT_RGB, paint(height, width, 3, painter).data());
}

std::string one_colour(int64_t height, int64_t width, int value) {
  return rgb_png(height, width, [&](auto...) { return value; });
}

/// Components: 1 grey, 3 RGB, 4 CMYK.
std::string jpeg(int64_t height, int64_t width, int components, const Painter& painter) {
  std::vector<uint8_t> pixels = paint(height, width, components, painter);
  jpeg_compress_struct out{};
  jpeg_error_mgr errors{};
  out.err = jpeg_std_error(&errors);
  jpeg_create_compress(&out);
  unsigned char* bytes = nullptr;
  unsigned long size = 0;  // NOLINT(google-runtime-int): libjpeg's
  jpeg_mem_dest(&out, &bytes, &size);
  out.image_width = static_cast<JDIMENSION>(width);
  out.image_height = static_cast<JDIMENSION>(height);
  out.input_components = components;
  out.in_color_space = components == 1 ? JCS_GRAYSCALE : components == 3 ? JCS_RGB : JCS_CMYK;
  jpeg_set_defaults(&out);
  jpeg_set_quality(&out, 100, TRUE);
  jpeg_start_compress(&out, TRUE);
  while (out.next_scanline < out.image_height) {
    JSAMPROW row = pixels.data() + out.next_scanline * static_cast<size_t>(width * components);
    jpeg_write_scanlines(&out, &row, 1);
  }
  jpeg_finish_compress(&out);
  std::string text(reinterpret_cast<const char*>(bytes), size);
  jpeg_destroy_compress(&out);
  std::free(bytes);
  return text;
}

int value(const Samples& samples, int64_t index, size_t at) {
  return static_cast<uint8_t>(values_of(samples, index)[at]);
}

std::vector<int> resized(const std::string& bytes, int64_t size) {
  std::vector<std::byte> out(3 * size * size);
  const Image image = decode_image("image", bytes);
  const Image scaled = parsimony::resized(image, with_shorter_side(image, size));
  to_planar(cropped(scaled, {size, size}), out.data());
  std::vector<int> values;
  for (const std::byte b : out) values.push_back(std::to_integer<int>(b));
  return values;
}

TEST(Folder, ReadsBothPartsWithTheirClasses) {
  TemporaryFolder folder;
  write(folder / "train/cat/a.png", one_colour(4, 5, 10));
  write(folder / "train/cat/b.PNG", one_colour(4, 5, 11));
  write(folder / "train/ant/a.jpeg", jpeg(4, 5, 3, [](auto...) { return 20; }));
  write(folder / "train/ant/notes.txt", "not an image");
  write(folder / "train/.cache/a.png", "hidden");
  write(folder / "test/cat/c.jpg", jpeg(4, 5, 3, [](auto...) { return 30; }));
  const Dataset data = read_dataset("folder:" + folder / "");
  EXPECT_EQ(data.classes, (std::vector<std::string>{"ant", "cat"}));
  EXPECT_EQ(data.train.dims, (Shape{3, 4, 5}));
  ASSERT_EQ(data.train.count(), 3);
  std::multiset<std::pair<int64_t, int>> found;
  for (int64_t i = 0; i < 3; ++i) {
    found.emplace(data.train.labels[i], value(data.train, i, 7));
  }
  EXPECT_EQ(found, (std::multiset<std::pair<int64_t, int>>{{0, 20}, {1, 10}, {1, 11}}));
  EXPECT_EQ(data.test.labels, (std::vector<int64_t>{1}));
  EXPECT_EQ(value(data.test, 0, 0), 30);
}

TEST(Folder, SplitsClassFoldersBySeed) {
  TemporaryFolder folder;
  for (int i = 0; i < 20; ++i) {
    const std::string name = (i % 2 == 0 ? "even/" : "odd/") + std::to_string(i) + ".png";
    write(folder / name, one_colour(2, 2, i));
  }
  const std::string spec = "folder:" + folder / "";
  const Dataset data = read_dataset(spec);
  EXPECT_EQ(data.train.count(), 16);
  EXPECT_EQ(data.test.count(), 4);
  std::set<int> all;
  for (const Samples* part : {&data.train, &data.test}) {
    for (int64_t i = 0; i < part->count(); ++i) {
      const int number = value(*part, i, 0);
      all.insert(number);
      EXPECT_EQ(part->labels[i], number % 2);
    }
  }
  EXPECT_EQ(all.size(), 20U);
  EXPECT_EQ(read_dataset(spec, {.threads = 3}).fingerprint, data.fingerprint);
  EXPECT_NE(read_dataset(spec, {.seed = 1}).fingerprint, data.fingerprint);
  // The first few are of all classes, whatever the order on the disk.
  const Dataset few = read_dataset(spec, {.train_samples = 8});
  EXPECT_EQ(few.train.count(), 8);
  EXPECT_EQ(std::set<int64_t>(few.train.labels.begin(), few.train.labels.end()).size(), 2U);
}

TEST(Folder, ResizesWhenAsked) {
  TemporaryFolder folder;
  write(folder / "train/a/1.png", one_colour(30, 50, 90));
  write(folder / "train/b/1.png", one_colour(9, 7, 91));
  write(folder / "val/a/1.png", one_colour(100, 20, 92));
  const std::string spec = "folder:" + folder / "";
  const std::string why = failure_of<ModelError>(spec);
  EXPECT_NE(why.find("pass a size to resize them"), std::string::npos) << why;
  const Dataset data = read_dataset(spec, {.size = 16});
  EXPECT_EQ(data.train.dims, (Shape{3, 16, 16}));
  for (int64_t i = 0; i < 2; ++i) {
    const auto label = static_cast<int>(data.train.labels[i]);
    const std::string all = values_of(data.train, i);
    EXPECT_EQ(all, std::string(all.size(), static_cast<char>(90 + label)));
  }
  EXPECT_EQ(value(data.test, 0, 100), 92);
}

TEST(Folder, SaysWhatIsWrong) {
  TemporaryFolder folder;
  const std::string place = folder / "data";
  const std::string spec = "folder:" + place;
  EXPECT_EQ(failure_of<IoError>(spec), "cannot list \"" + place + "\": No such file or directory");
  std::filesystem::create_directories(place + "/train");
  EXPECT_EQ(failure_of<ModelError>(spec),
            place + "/train: found no folders; expected one per class");
  write(place + "/train/cat/x.txt", "");
  EXPECT_EQ(failure_of<ModelError>(spec), place + "/train/cat: found no .jpg, .jpeg or .png");
  write(place + "/train/cat/x.png", one_colour(2, 2, 1));
  write(place + "/test/cats/x.png", one_colour(2, 2, 1));
  EXPECT_EQ(failure_of<ModelError>(spec),
            place +
                "/test: class \"cats\" is not in the training set. Did you mean "
                "\"cat\"?");
}

class Damage : public testing::Test {
 protected:
  std::string complaint(const std::string& bytes) {
    const std::string path = folder_ / "train/cat/x.png";
    write(folder_ / "test/cat/x.png", one_colour(20, 20, 0));
    write(path, bytes);
    const std::string why = failure_of<ModelError>("folder:" + folder_ / "");
    return why.substr(std::min(why.size(), path.size() + 2));
  }

  TemporaryFolder folder_;
};

TEST_F(Damage, OfPngs) {
  const std::string good = png(20, 20, PNG_FORMAT_RGB, pattern(1200).data());
  ASSERT_GT(good.size(), 1200U);
  EXPECT_EQ(complaint(good.substr(0, 300)), "byte 300: damaged image: unexpected end of file");
  std::string changed = good;
  changed[200] = static_cast<char>(~changed[200]);
  const std::string why = complaint(changed);
  EXPECT_TRUE(why.starts_with("byte ")) << why;
  EXPECT_NE(why.find("damaged image"), std::string::npos) << why;
  EXPECT_EQ(complaint("GIF89a"), "byte 0: damaged image: neither JPEG nor PNG");
  EXPECT_EQ(complaint(""), "byte 0: damaged image: neither JPEG nor PNG");
}

/// A header costs nothing to write.
TEST_F(Damage, SaysMorePixelsThanAFileCanHave) {
  std::string large = png(20, 20, PNG_FORMAT_RGB, pattern(1200).data());
  const std::string side("\x00\x00\x40\x00", 4);  // 16,384
  large.replace(16, 8, side + side);
  const uLong sum = crc32(0, reinterpret_cast<const Bytef*>(large.data()) + 12, 17);
  for (size_t i = 0; i < 4; ++i) large[29 + i] = static_cast<char>(sum >> (24 - 8 * i));
  EXPECT_NE(complaint(large).find("damaged image: too many pixels for a file of its size"),
            std::string::npos)
      << complaint(large);
}

TEST_F(Damage, OfJpegs) {
  const std::string noise = pattern(4800);
  const std::string good =
      jpeg(40, 40, 3, [&](int64_t y, int64_t x, int64_t c) { return noise[(y * 40 + x) * 3 + c]; });
  ASSERT_GT(good.size(), 2000U);
  EXPECT_EQ(complaint(good.substr(0, 1000)),
            "byte 1000: damaged image: Premature end of JPEG file");
  EXPECT_EQ(complaint(good.substr(0, 100)), "byte 100: damaged image: Premature end of JPEG file");
  std::string changed = good;
  changed[good.size() / 2] = '\xFF';
  changed[good.size() / 2 + 1] = '\xD9';  // the end marker, too early
  EXPECT_NE(complaint(changed).find("damaged image"), std::string::npos);
}

TEST(Image, OtherKindsBecomeRgb) {
  const auto pixel = [](const std::string& bytes) {
    const Image image = decode_image("image", bytes);
    return std::vector<int>(image.pixels.begin(), image.pixels.begin() + 3);
  };
  const uint8_t grey = 77;
  EXPECT_EQ(pixel(png(1, 1, PNG_FORMAT_GRAY, &grey)), (std::vector<int>{77, 77, 77}));
  const std::array<uint8_t, 4> rgba = {10, 20, 30, 40};
  EXPECT_EQ(pixel(png(1, 1, PNG_FORMAT_RGBA, rgba.data())), (std::vector<int>{10, 20, 30}));
  const uint16_t deep = 0x8090;
  EXPECT_EQ(pixel(png(1, 1, PNG_FORMAT_LINEAR_Y, &deep)), (std::vector<int>{128, 128, 128}));
  EXPECT_EQ(pixel(jpeg(8, 8, 1, [](auto...) { return 77; })), (std::vector<int>{77, 77, 77}));
  // Inverted, as Adobe stores them: 255 is no ink.
  const Painter cmyk = [](int64_t, int64_t, int64_t c) { return std::array{255, 128, 0, 128}[c]; };
  EXPECT_EQ(pixel(jpeg(8, 8, 4, cmyk)), (std::vector<int>{128, 64, 0}));
}

TEST(Image, ShrinkingTakesTheMiddleAndAverages) {
  // A quarter red, a half green, a quarter blue: the middle is all green.
  const Painter bands = [](int64_t, int64_t x, int64_t c) {
    const int64_t band = x < 16 ? 0 : x < 48 ? 1 : 2;
    return band == c ? 255 : 0;
  };
  const std::vector<int> green = resized(rgb_png(32, 64, bands), 32);
  EXPECT_EQ(std::count(green.begin(), green.begin() + 1024, 0), 1024);
  EXPECT_EQ(std::count(green.begin() + 1024, green.begin() + 2048, 255), 1024);

  // Lines one pixel wide become grey, not lines again.
  const Painter lines = [](int64_t, int64_t x, int64_t) { return x % 2 == 0 ? 0 : 200; };
  const std::vector<int> grey = resized(rgb_png(64, 64, lines), 8);
  for (const int v : grey) EXPECT_NEAR(v, 100, 14);
}

TEST(Image, ResizingKeepsARamp) {
  const Painter ramp = [](int64_t y, int64_t x, int64_t c) { return 2 * x + y + 20 * c; };
  for (const int64_t size : {12, 24, 48, 96}) {
    const std::vector<int> values = resized(rgb_png(48, 48, ramp), size);
    const double step = 48.0 / static_cast<double>(size);
    const auto edge = size / 8;  // at the border there is nothing to go on with
    for (int64_t y = edge; y < size - edge; ++y) {
      for (int64_t x = edge; x < size - edge; ++x) {
        const double expected = 2 * ((static_cast<double>(x) + 0.5) * step - 0.5) +
                                (static_cast<double>(y) + 0.5) * step - 0.5 + 20;
        EXPECT_NEAR(values[(size + y) * size + x], expected, 1.1);
      }
    }
  }
  const std::string original = rgb_png(48, 48, ramp);
  std::vector<std::byte> same(3 * 48 * 48);
  to_planar(decode_image("image", original), same.data());
  const std::vector<int> unchanged = resized(original, 48);
  for (size_t i = 0; i < same.size(); ++i) {
    ASSERT_EQ(unchanged[i], std::to_integer<int>(same[i]));
  }
}

/// What a network with an input of these dims gets of one picture.
std::vector<float> prepared(const std::string& png, const Shape& dims, const std::string& spec) {
  const TemporaryFolder folder;
  std::filesystem::create_directory(folder / "deep");
  write_file(folder / "deep/x.png", png);
  Builder net;
  net.output(net.node("Relu", {net.input("x", dims)}, "y"));
  finish(net.graph);
  const SampleSource data("images:" + (folder / ""), net.graph, {.image = spec});
  EXPECT_EQ(data.samples(), 1);
  return elements<float>(data.inputs(0, 1)[0]);
}

/// Two rows and four columns: 10 · row + column in red, 50 in green, 100 in blue.
std::string small_picture() {
  return rgb_png(2, 4, [](int64_t y, int64_t x, int channel) {
    return channel == 0 ? static_cast<int>(10 * y + x) : channel == 1 ? 50 : 100;
  });
}

TEST(Pictures, AreWhatTheNetworkTakes) {
  const std::string png = small_picture();
  using Values = std::vector<float>;
  EXPECT_EQ(prepared(png, {-1, 3, 2, 2}, "scale=1"),
            (Values{1, 2, 11, 12, 50, 50, 50, 50, 100, 100, 100, 100}));
  EXPECT_EQ(prepared(png, {1, 3, -1, -1}, "crop=1,bgr,scale=1"), (Values{100, 50, 1}));
  EXPECT_EQ(prepared(png, {1, 1, 4, 4}, "scale=1,letterbox=7").front(), 7) << "a row above";
  EXPECT_EQ(prepared(png, {1, 2, 4, 3}, "scale=1,mean=1/50/0,std=1/1/100"),
            (Values{-1, 0, 1, 0, 0, 1, 1, 0, 1, 2, 0, 1, 9, 0, 1, 10, 0, 1, 11, 0, 1, 12, 0, 1}));
  const Values grey = prepared(png, {1, 1, 2, 4}, "");
  EXPECT_NEAR(grey[5], (0.299 * 11 + 0.587 * 50 + 0.114 * 100) / 255, 1e-6);
}

TEST(Pictures, SayWhatIsMissing) {
  const auto message = [](const Shape& dims, const std::string& spec) {
    return message_of([&] { prepared(small_picture(), dims, spec); });
  };
  EXPECT_EQ(message({1, 3, -1, -1}, ""),
            "images: input \"x\" [1, 3, -1, -1] has a dynamic size (-1): pass --image resize=HxW "
            "or --input");
  EXPECT_EQ(message({1, 3}, ""),
            "images: input \"x\" [1, 3] does not take images, which have four axes");
  EXPECT_NE(message({1, 3, 2, 2}, "grey").find("the input expects [1, 3, 2, 2]"),
            std::string::npos);
  EXPECT_NE(message({1, 3, 2, 2}, "mean=1/2").find("--image \"mean=1/2\""), std::string::npos);
}

}  // namespace
}  // namespace parsimony::test
