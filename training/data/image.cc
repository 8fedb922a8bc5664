#include <algorithm>
#include <cmath>
#include <string_view>

#include "parsimony/training/data/errors.h"
#include "parsimony/training/data/image_impl.h"

namespace parsimony::training {
namespace {

/// The pixels that become one, and what share of it each is, in 1/2^16.
struct Tap {
  int64_t first = 0;
  std::vector<int32_t> weights;
};

constexpr int32_t kOne = 1 << 16;

/// `length` pixels become `scaled`, of which we want `count` from `begin` on.
std::vector<Tap> taps_of(int64_t length, int64_t scaled, int64_t begin, int64_t count) {
  const double step = static_cast<double>(length) / static_cast<double>(scaled);
  const double reach = std::max(step, 1.0);  // a triangle's half width
  std::vector<Tap> taps;
  for (int64_t i = begin; i < begin + count; ++i) {
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

/// The pixel made of those from `from` on, each `step` behind the one before.
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

void resize_image(const Image& image, int64_t size, std::byte* out) {
  const int64_t shorter = std::min(image.height, image.width);
  const auto scaled = [&](int64_t length) { return (length * size + shorter / 2) / shorter; };
  const int64_t height = scaled(image.height);
  const int64_t width = scaled(image.width);
  const std::vector<Tap> columns = taps_of(image.width, width, (width - size) / 2, size);
  const std::vector<Tap> rows = taps_of(image.height, height, (height - size) / 2, size);

  // Along the rows first, of those rows that are used.
  const int64_t top = rows.front().first;
  const int64_t bottom = rows.back().first + static_cast<int64_t>(rows.back().weights.size());
  std::vector<uint8_t> narrow((bottom - top) * size * 3);
  for (int64_t y = top; y < bottom; ++y) {
    const uint8_t* line = image.pixels.data() + y * image.width * 3;
    uint8_t* to = narrow.data() + (y - top) * size * 3;
    for (const Tap& tap : columns) {
      for (int64_t c = 0; c < 3; ++c) *to++ = weighted(tap, line + tap.first * 3 + c, 3);
    }
  }
  for (int64_t y = 0; y < size; ++y) {
    const Tap& tap = rows[y];
    const uint8_t* line = narrow.data() + (tap.first - top) * size * 3;
    for (int64_t x = 0; x < size; ++x) {
      for (int64_t c = 0; c < 3; ++c) {
        const uint8_t pixel = weighted(tap, line + x * 3 + c, size * 3);
        out[(c * size + y) * size + x] = static_cast<std::byte>(pixel);
      }
    }
  }
}

void to_planar(const Image& image, std::byte* out) {
  const int64_t plane = image.height * image.width;
  for (int64_t i = 0; i < plane; ++i) {
    for (int64_t c = 0; c < 3; ++c) {
      out[c * plane + i] = static_cast<std::byte>(image.pixels[3 * i + c]);
    }
  }
}

}  // namespace parsimony::training
