#include <algorithm>
#include <cmath>
#include <cstring>
#include <type_traits>

#include "parsimony/base/random.h"
#include "parsimony/training/loader/gather_impl.h"

namespace parsimony::training {
namespace {

/// Separates augmentation from the order, which has the same seed.
constexpr uint64_t kAugmentation = 0x617567;

/// The random numbers of one sample in one epoch.
struct Draw {
  bool flip = false;
  int64_t down = 0;   ///< row y of the result is row y + down
  int64_t right = 0;  ///< likewise
  int64_t centre_y = 0;
  int64_t centre_x = 0;

  Draw(const Augmentation& requested, const LoaderOptions& options, const Shape& dims,
       int64_t epoch, int64_t index) {
    Random random(options.seed + kAugmentation, static_cast<uint64_t>(epoch),
                  static_cast<uint64_t>(index));
    // All are drawn always, so that enabling one does not change the others.
    flip = random.below(2) == 1 && requested.flip;
    const auto reach = static_cast<int32_t>(requested.crop);
    down = random.between(-reach, reach);
    right = random.between(-reach, reach);
    centre_y = random.below(static_cast<uint32_t>(dims[1]));
    centre_x = random.below(static_cast<uint32_t>(dims[2]));
  }
};

/// Copies a row, shifted and possibly mirrored. `from` is null outside of the image.
template <typename Pixel>
void move_row(const Pixel* from, int64_t width, int64_t right, bool flip, Pixel* to) {
  if (from == nullptr) {
    std::fill(to, to + width, Pixel{0});
    return;
  }
  const int64_t begin = std::clamp<int64_t>(-right, 0, width);
  const int64_t end = std::clamp<int64_t>(width - right, 0, width);
  std::fill(to, to + begin, Pixel{0});
  std::copy(from + begin + right, from + end + right, to + begin);
  std::fill(to + end, to + width, Pixel{0});
  if (flip) std::reverse(to, to + width);
}

template <typename Pixel>
Pixel as_stored(float value) {
  if constexpr (std::is_same_v<Pixel, uint8_t>) {
    return static_cast<uint8_t>(std::lround(std::clamp(value, 0.F, 255.F)));
  } else {
    return value;
  }
}

}  // namespace

std::vector<int64_t> Gatherer::draws(int64_t epoch, std::span<const int64_t> indices) const {
  std::vector<int64_t> drawn;
  drawn.reserve(indices.size() * kDraws);
  for (const int64_t index : indices) {
    const Draw draw(options_.augmentation, options_, samples_.dims, epoch, index);
    drawn.insert(drawn.end(),
                 {draw.flip ? 1 : 0, draw.down, draw.right, draw.centre_y, draw.centre_x});
  }
  return drawn;
}

std::vector<float> Gatherer::fill() const {
  std::vector<float> values = fill_;
  if (samples_.dtype != DType::kUInt8) return values;
  for (float& value : values) value = as_stored<uint8_t>(value);
  return values;
}

Gatherer::Gatherer(const Samples& samples, const LoaderOptions& options)
    : samples_(samples),
      options_(options),
      channels_(samples.dims.front()),
      plane_(element_count(samples.dims) / channels_),
      scale_(channels_, options.scale, options.mean, options.deviation) {
  for (size_t c = 0; c < static_cast<size_t>(channels_); ++c) {
    const double mean = options.mean.empty() ? 0 : options.mean[c];
    fill_.push_back(static_cast<float>(mean / options.scale));
  }
}

/// Returns the sample itself if it is unchanged, otherwise `scratch`.
template <typename Pixel>
const Pixel* Gatherer::augmented(int64_t epoch, int64_t index, Pixel* scratch) const {
  const Augmentation& requested = options_.augmentation;
  const auto* from =
      reinterpret_cast<const Pixel*>(samples_.values.data() + index * samples_.stride());
  if (!requested.any()) return from;
  const Draw draw(requested, options_, samples_.dims, epoch, index);
  const int64_t height = samples_.dims[1];
  const int64_t width = samples_.dims[2];
  const int64_t top = std::clamp<int64_t>(draw.centre_y - requested.cutout / 2, 0, height);
  const int64_t left = std::clamp<int64_t>(draw.centre_x - requested.cutout / 2, 0, width);
  const int64_t bottom = std::min(draw.centre_y - requested.cutout / 2 + requested.cutout, height);
  const int64_t right = std::min(draw.centre_x - requested.cutout / 2 + requested.cutout, width);
  Pixel* to = scratch;
  for (int64_t c = 0; c < channels_; ++c) {
    const auto fill = as_stored<Pixel>(fill_[c]);
    for (int64_t y = 0; y < height; ++y, to += width) {
      const int64_t row = y + draw.down;
      const bool inside = row >= 0 && row < height;
      move_row(inside ? from + c * plane_ + row * width : nullptr, width, draw.right, draw.flip,
               to);
      if (y >= top && y < bottom && left < right) std::fill(to + left, to + right, fill);
    }
  }
  return scratch;
}

void Gatherer::gather(int64_t epoch, std::span<const int64_t> indices, std::byte* out) const {
  const int64_t stride = samples_.stride();
  for (const int64_t index : indices) {
    const void* from =
        samples_.dtype == DType::kUInt8
            ? static_cast<const void*>(augmented(epoch, index, reinterpret_cast<uint8_t*>(out)))
            : augmented(epoch, index, reinterpret_cast<float*>(out));
    if (from != out) std::memcpy(out, from, stride);
    out += stride;
  }
}

template <typename Pixel, typename Input>
void Gatherer::convert(int64_t epoch, std::span<const int64_t> indices, Input* out) const {
  const int64_t size = channels_ * plane_;
  std::vector<Pixel> scratch(size);
  for (const int64_t index : indices) {
    const Pixel* from = augmented(epoch, index, scratch.data());
    for (int64_t c = 0; c < channels_; ++c) {
      const float factor = scale_.factors[c];
      const float offset = scale_.offsets[c];
      const Pixel* plane = from + c * plane_;
      if (options_.channels_last) {
        Input* to = out + c;
        for (int64_t i = 0; i < plane_; ++i) {
          to[i * channels_] = static_cast<Input>(static_cast<float>(plane[i]) * factor + offset);
        }
      } else {
        Input* to = out + c * plane_;
        for (int64_t i = 0; i < plane_; ++i) {
          to[i] = static_cast<Input>(static_cast<float>(plane[i]) * factor + offset);
        }
      }
    }
    out += size;
  }
}

template <typename Input>
void Gatherer::gather(int64_t epoch, std::span<const int64_t> indices, Input* out) const {
  samples_.dtype == DType::kUInt8 ? convert<uint8_t>(epoch, indices, out)
                                  : convert<float>(epoch, indices, out);
}

template void Gatherer::gather(int64_t, std::span<const int64_t>, float*) const;
template void Gatherer::gather(int64_t, std::span<const int64_t>, c10::BFloat16*) const;
template void Gatherer::gather(int64_t, std::span<const int64_t>, c10::Half*) const;
template void Gatherer::gather(int64_t, std::span<const int64_t>, int64_t*) const;

}  // namespace parsimony::training
