#include "parsimony/data/image.h"

#include <algorithm>
#include <cmath>
#include <string_view>

#include "parsimony/base/parse.h"
#include "parsimony/data/errors.h"

namespace parsimony {
namespace {

constexpr double kGreyOfYolo = 114;

/// One "name=value" of the spec.
class Word {
 public:
  explicit Word(std::string_view text) : text_(text) {
    const size_t at = text.find('=');
    name_ = text.substr(0, at);
    if (at != std::string_view::npos) value_ = text.substr(at + 1);
  }

  bool is(std::string_view name) const { return name_ == name && value_.empty(); }
  bool gives(std::string_view name) const { return name_ == name && !value_.empty(); }

  double number() const { return number(value_); }

  std::vector<double> numbers() const {
    std::vector<double> result;
    for (const std::string_view one : split(value_, '/')) result.push_back(number(one));
    return result;
  }

  /// "N" or "HxW".
  ImageSize size() const {
    const size_t at = value_.find('x');
    if (at == std::string_view::npos) return {side(value_), side(value_)};
    return {side(value_.substr(0, at)), side(value_.substr(at + 1))};
  }
  bool is_one_number() const { return value_.find('x') == std::string_view::npos; }

  [[noreturn]] void fail() const { throw errors::bad_image_spec(text_); }

 private:
  double number(std::string_view text) const {
    const auto number = number_of<double>(text);
    if (!number) fail();
    return *number;
  }
  int64_t side(std::string_view text) const {
    constexpr int64_t kLargest = 1 << 14;
    const auto side = number_of<int64_t>(text);
    if (!side || *side < 1 || *side > kLargest) fail();
    return *side;
  }

  std::string_view text_;
  std::string_view name_;
  std::string_view value_;
};

void read(const Word& word, ImageSpec& spec) {
  using enum ImageSpec::Colours;
  if (word.gives("resize") && word.is_one_number()) {
    spec.shorter = word.size().height;
  } else if (word.gives("resize")) {
    spec.stretch = word.size();
  } else if (word.gives("crop")) {
    spec.crop = word.size();
  } else if (word.is("letterbox")) {
    spec.letterbox = kGreyOfYolo;
  } else if (word.gives("letterbox")) {
    spec.letterbox = word.number();
  } else if (word.is("rgb")) {
    spec.colours = kRgb;
  } else if (word.is("bgr")) {
    spec.colours = kBgr;
  } else if (word.is("grey")) {
    spec.colours = kGrey;
  } else if (word.is("nhwc")) {
    spec.channels_last = true;
  } else if (word.is("nchw")) {
    spec.channels_last = false;
  } else if (word.gives("scale")) {
    spec.scale = word.number();
  } else if (word.gives("mean")) {
    spec.mean = word.numbers();
  } else if (word.gives("std")) {
    spec.deviation = word.numbers();
    for (const double one : spec.deviation) {
      if (!(one > 0)) word.fail();
    }
  } else {
    word.fail();
  }
}

}  // namespace

ImageSpec parse_image_spec(std::string_view text) {
  ImageSpec spec;
  if (text.empty()) return spec;
  for (const std::string_view word : split(text, ',')) read(Word(word), spec);
  const bool crops = spec.crop.has_value() || spec.shorter.has_value();
  if (spec.letterbox && crops) throw errors::bad_image_spec(text);
  return spec;
}

namespace {

/// The source pixels of one result pixel, and their weights in 1/2^16.
struct Tap {
  int64_t first = 0;
  std::vector<int32_t> weights;
};

constexpr int32_t kOne = 1 << 16;

/// Returns the taps for scaling `length` pixels to `scaled`.
std::vector<Tap> taps_of(int64_t length, int64_t scaled) {
  const double step = static_cast<double>(length) / static_cast<double>(scaled);
  const double reach = std::max(step, 1.0);  // a triangle's half width
  std::vector<Tap> taps;
  for (int64_t i = 0; i < scaled; ++i) {
    const double centre = (static_cast<double>(i) + 0.5) * step;
    const auto first = std::max<int64_t>(0, std::llround(std::floor(centre - reach)));
    const auto last = std::min<int64_t>(length - 1, std::llround(std::ceil(centre + reach)));
    std::vector<double> weights;
    double sum = 0;
    for (int64_t j = first; j <= last; ++j) {
      const double distance = std::abs(static_cast<double>(j) + 0.5 - centre) / reach;
      weights.push_back(std::max(0.0, 1 - distance));
      sum += weights.back();
    }
    Tap tap{first, {}};
    int32_t left = kOne;
    for (const double weight : weights) {
      tap.weights.push_back(static_cast<int32_t>(std::lround(weight / sum * kOne)));
      left -= tap.weights.back();
    }
    *std::max_element(tap.weights.begin(), tap.weights.end()) += left;  // they sum to one
    taps.push_back(std::move(tap));
  }
  return taps;
}

/// Returns the weighted sum of pixels from `from` on, `step` apart.
uint8_t weighted(const Tap& tap, const uint8_t* from, int64_t step) {
  int64_t sum = 0;
  for (const int32_t weight : tap.weights) {
    sum += weight * *from;
    from += step;
  }
  return static_cast<uint8_t>(std::clamp<int64_t>((sum + kOne / 2) / kOne, 0, 255));
}

}  // namespace

Image decode_image(const std::string& path, const std::string& bytes) {
  constexpr std::string_view kJpeg = "\xFF\xD8";
  constexpr std::string_view kPng = "\x89PNG";
  if (bytes.starts_with(kJpeg)) return decode_jpeg(path, bytes);
  if (bytes.starts_with(kPng)) return decode_png(path, bytes);
  throw errors::damaged_image(path, 0, "neither JPEG nor PNG");
}

Image resized(const Image& image, ImageSize size) {
  if (size == ImageSize{image.height, image.width}) return image;
  const std::vector<Tap> columns = taps_of(image.width, size.width);
  const std::vector<Tap> rows = taps_of(image.height, size.height);
  const int64_t line_size = size.width * 3;
  std::vector<uint8_t> narrow(image.height * line_size);
  for (int64_t y = 0; y < image.height; ++y) {
    const uint8_t* line = image.pixels.data() + y * image.width * 3;
    uint8_t* to = narrow.data() + y * line_size;
    for (const Tap& tap : columns) {
      for (int64_t c = 0; c < 3; ++c) *to++ = weighted(tap, line + tap.first * 3 + c, 3);
    }
  }
  Image result{size.height, size.width, {}};
  result.pixels.resize(size.height * line_size);
  uint8_t* to = result.pixels.data();
  for (const Tap& tap : rows) {
    const uint8_t* line = narrow.data() + tap.first * line_size;
    for (int64_t i = 0; i < line_size; ++i) *to++ = weighted(tap, line + i, line_size);
  }
  return result;
}

ImageSize with_shorter_side(const Image& image, int64_t length) {
  const int64_t shorter = std::min(image.height, image.width);
  const auto scaled = [&](int64_t side) { return (side * length + shorter / 2) / shorter; };
  return {scaled(image.height), scaled(image.width)};
}

namespace {

/// Places the image at (top, left) of an image of that size, and crops the rest.
Image placed(const Image& image, ImageSize size, int64_t top, int64_t left, uint8_t around) {
  Image result{size.height, size.width, {}};
  result.pixels.assign(size.height * size.width * 3, around);
  const int64_t first = std::max<int64_t>(0, left);
  const int64_t count = std::min(size.width, left + image.width) - first;
  if (count <= 0) return result;
  for (int64_t y = std::max<int64_t>(0, top); y < std::min(size.height, top + image.height); ++y) {
    const uint8_t* from = image.pixels.data() + ((y - top) * image.width + first - left) * 3;
    std::copy_n(from, count * 3, result.pixels.data() + (y * size.width + first) * 3);
  }
  return result;
}

}  // namespace

Image cropped(const Image& image, ImageSize size) {
  if (size == ImageSize{image.height, image.width}) return image;
  return placed(image, size, -((image.height - size.height) / 2), -((image.width - size.width) / 2),
                0);
}

Image padded(const Image& image, ImageSize size, double pad) {
  return placed(image, size, (size.height - image.height) / 2, (size.width - image.width) / 2,
                static_cast<uint8_t>(std::clamp(pad, 0.0, 255.0)));
}

void to_planar(const Image& image, std::byte* out) {
  const int64_t plane = image.height * image.width;
  for (int64_t i = 0; i < plane; ++i) {
    for (int64_t c = 0; c < 3; ++c) {
      out[c * plane + i] = static_cast<std::byte>(image.pixels[3 * i + c]);
    }
  }
}

}  // namespace parsimony
