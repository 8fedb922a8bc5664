// Sound, text and descriptions of pictures as data for a network.
#include <gtest/gtest.h>

#include <cstring>

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

/// 16-bit PCM.
std::string wav(int channels, int rate, const std::vector<int16_t>& values) {
  std::string text;
  const auto number = [&](uint32_t value, int bytes) {
    for (int i = 0; i < bytes; ++i) text += static_cast<char>(value >> (8 * i));
  };
  const auto size = static_cast<uint32_t>(2 * values.size());
  text += "RIFF";
  number(36 + size, 4);
  text += "WAVEfmt ";
  number(16, 4);
  number(1, 2);
  number(static_cast<uint32_t>(channels), 2);
  number(static_cast<uint32_t>(rate), 4);
  number(static_cast<uint32_t>(2 * channels * rate), 4);
  number(static_cast<uint32_t>(2 * channels), 2);
  number(16, 2);
  text += "data";
  number(size, 4);
  for (const int16_t value : values) number(static_cast<uint16_t>(value), 2);
  return text;
}

class InputSources : public testing::Test {
 protected:
  ValueId add_input(const std::string& name, const Shape& dims, DType type = DType::kFloat32) {
    const ValueId value = net_.input(name, dims, type);
    net_.output(net_.node("Identity", {value}, name + "_out"));
    finish(net_.graph);
    return value;
  }
  SampleSource open(const std::string& source, std::vector<InputSpec> specs = {}) const {
    return SampleSource(source, net_.graph, {.inputs = std::move(specs)});
  }

  TemporaryFolder folder_;
  Builder net_;
};

TEST_F(InputSources, SoundIsCutIntoWindows) {
  add_input("wave", {-1, 1, 2});
  std::filesystem::create_directory(folder_ / "below");
  write_file(folder_ / "a.wav", wav(1, 8000, {16384, -16384, 8192, 0, 1}));
  write_file(folder_ / "below/b.WAV", wav(2, 8000, {16384, 0, 0, 16384, 8192, 8192}));
  write_file(folder_ / "c.txt", "no sound");
  const SampleSource data = open("audio:" + (folder_ / "") + ",rate=8000");
  EXPECT_EQ(data.samples(), 3);
  const TensorList inputs = data.inputs(1, 2);
  EXPECT_EQ(inputs[0].dims, (Shape{2, 1, 2}));
  EXPECT_EQ(elements<float>(inputs[0]), (std::vector<float>{0.25, 0, 0.25, 0.25}));
}

TEST_F(InputSources, SoundThatCannotBeUsedIsNamed) {
  add_input("wave", {-1, -1});
  const std::string path = folder_ / "a.wav";
  write_file(path, wav(1, 8000, {1, 2, 3}));
  EXPECT_EQ(message_of([&] { open("audio:" + path); }),
            "input \"wave\" [-1, -1] (-1 is any size) does not take windows [samples, length], or "
            "their length is dynamic: pass it with audio:DIR,frames=N");
  EXPECT_EQ(message_of([&] { open("audio:" + path + ",frames=2,rate=16000"); }),
            path + " has 8000 samples per second, expected 16000; resample it");
  EXPECT_EQ(open("audio:" + path + ",frames=2").samples(), 1);
  EXPECT_EQ(message_of([&] { open("audio:" + path + ",frames=x"); }),
            "audio: \"frames=x\": expected rate=N or frames=N, with N from 1");
  write_file(path, "RIFF");
  EXPECT_NE(
      message_of([&] { open("audio:" + path + ",frames=2"); }).find("cannot be decoded as audio"),
      std::string::npos);
}

TEST_F(InputSources, TextIsItsBytes) {
  add_input("tokens", {-1, 4}, DType::kInt64);
  write_file(folder_ / "text", "abcdefghij");
  const SampleSource data = open("text:" + (folder_ / "text"));
  EXPECT_EQ(data.samples(), 2);
  EXPECT_EQ(elements<int64_t>(data.inputs(1, 1)[0]), (std::vector<int64_t>{'e', 'f', 'g', 'h'}));
  write_file(folder_ / "text", "abc");
  EXPECT_EQ(message_of([&] { open("text:" + (folder_ / "text")); }),
            (folder_ / "text") + ": 3 elements, and one window has 4");
}

TEST_F(InputSources, TextMayGiveItsLengthAndLabels) {
  add_input("tokens", {-1, -1}, DType::kInt64);
  const std::string path = folder_ / "text.gz";
  write_file(path, gzipped("abcdefghi"));
  EXPECT_EQ(message_of([&] { open("text:" + path); }),
            "input \"tokens\" [-1, -1] (-1 is any size) does not take windows [samples, length], "
            "or their length is dynamic: pass it with text:FILE,length=N or --input");
  const SampleSource bare = open("text:" + path + ",length=3");
  EXPECT_EQ(bare.samples(), 3);
  EXPECT_FALSE(bare.labelled());
  const SampleSource data = open("text:" + path + ",length=3,labels");
  EXPECT_EQ(data.samples(), 2) << "the last byte has none that follows it";
  EXPECT_EQ(data.label_dims(), Shape{3});
  EXPECT_EQ(elements<int64_t>(data.inputs(1, 1)[0]), (std::vector<int64_t>{'d', 'e', 'f'}));
  EXPECT_EQ(data.labels(1, 1), (std::vector<int64_t>{'e', 'f', 'g'}));
  EXPECT_EQ(message_of([&] { open("text:" + path + ",length=9,labels"); }),
            path + ": 9 elements, and one window has 10");
}

TEST_F(InputSources, TextOfAnotherLengthThanTheInputIsRefused) {
  add_input("tokens", {-1, 4}, DType::kInt64);
  const std::string source = "text:" + (folder_ / "text") + ",length=2";
  write_file(folder_ / "text", "abcdefgh");
  EXPECT_EQ(message_of([&] { open(source); }),
            source + " yields shape [1, 2], the input expects [-1, 4] (-1 is any size)");
}

TEST_F(InputSources, ADataSetIsScaledAndHasLabels) {
  add_input("x", {-1, 3, 32, 32});
  SampleOptions options;
  options.labelled = {.train_samples = 6, .mean = {0.5, 0.25, 0}, .deviation = {1, 2, 4}};
  const Dataset stored = read_dataset("shapes:20,10", options.labelled);
  const SampleSource data("shapes:20,10", net_.graph, options);
  EXPECT_EQ(data.samples(), 6);
  EXPECT_EQ(data.test_samples(), 10);
  EXPECT_EQ(data.fingerprint(), stored.fingerprint);
  EXPECT_TRUE(data.label_dims().empty());
  EXPECT_EQ(data.labels(4, 2),
            std::vector(stored.train.labels.begin() + 4, stored.train.labels.end()));
  EXPECT_EQ(data.labels(6 + 3, 1).front(), stored.test.labels[3]);
  const TensorList inputs = data.inputs(6 + 3, 1);
  EXPECT_EQ(inputs[0].dims, (Shape{1, 3, 32, 32}));
  const std::vector<float> values = elements<float>(inputs[0]);
  const std::string bytes = values_of(stored.test, 3);
  for (const size_t i : {0, 1500, 3000}) {
    const float scaled = static_cast<float>(static_cast<uint8_t>(bytes[i])) / 255;
    const size_t c = i / 1024;
    const auto mean = static_cast<float>(options.labelled.mean[c]);
    EXPECT_NEAR(values[i], (scaled - mean) / static_cast<float>(options.labelled.deviation[c]),
                1e-6);
  }
}

TEST_F(InputSources, UnknownNamesHaveCandidates) {
  add_input("x", {-1, 3, 32, 32});
  EXPECT_EQ(
      message_of([&] { open("image:photos"); }),
      "unknown data set \"image\"; known are audio, cifar10, cifar100, folder, images, mnist, "
      "npy, npz, random, safetensors, shapes, text. Did you mean \"images\"?");
  EXPECT_EQ(message_of([&] { open("random:x"); }), "data \"random:x\": expected random:COUNT");
}

TEST_F(InputSources, OtherInputsNeedAValue) {
  add_input("tokens", {-1, 2}, DType::kInt64);
  add_input("mask", {-1, 2});
  write_file(folder_ / "text", "abcd");
  const std::string source = "text:" + (folder_ / "text");
  EXPECT_EQ(message_of([&] { open(source); }),
            source +
                " provides one input, but \"mask\" has no data: pass --input mask=VALUE, --states "
                "if an output is fed back to it, or arrays for all inputs (npz:FILE)");
  InputSpec nothing;
  nothing.open = true;
  InputSpec ones = nothing;
  ones.value = 1;
  const TensorList inputs = open(source, {nothing, ones}).inputs(0, 2);
  EXPECT_EQ(elements<int64_t>(inputs[0]), (std::vector<int64_t>{'a', 'b', 'c', 'd'}));
  EXPECT_EQ(elements<float>(inputs[1]), (std::vector<float>{1, 1, 1, 1}));
}

TEST(ImageSpecs, AreReadWordByWord) {
  const ImageSpec spec = parse_image_spec("resize=256,crop=224x200,bgr,nhwc,scale=1,mean=1/2/3");
  EXPECT_EQ(spec.shorter, 256);
  EXPECT_EQ(spec.crop, (ImageSize{224, 200}));
  EXPECT_EQ(spec.colours, ImageSpec::Colours::kBgr);
  EXPECT_EQ(spec.channels_last, true);
  EXPECT_EQ(spec.scale, 1);
  EXPECT_EQ(spec.mean, (std::vector<double>{1, 2, 3}));
  EXPECT_EQ(parse_image_spec("resize=10x20").stretch, (ImageSize{10, 20}));
  EXPECT_EQ(parse_image_spec("letterbox").letterbox, 114);
  for (const char* wrong : {"resize", "resize=0", "crop=2x", "bgr=1", "std=0", "mean=a", "letterbx",
                            "letterbox,crop=3", "rgb,,bgr"}) {
    EXPECT_THROW(parse_image_spec(wrong), ConfigError) << wrong;
  }
}

}  // namespace
}  // namespace parsimony::test
