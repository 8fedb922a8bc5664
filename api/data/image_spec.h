// What is done to a picture before a network sees it.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace parsimony {

/// In pixels.
struct ImageSize {
  int64_t height = 0;
  int64_t width = 0;
  bool operator==(const ImageSize&) const = default;
};

/// The size that the network takes is that of `crop`, else of `resize=HxW`, else the one that its
/// input declares. Without any of these words pictures are scaled until they cover that size, and
/// the middle is taken.
struct ImageSpec {
  enum class Colours : uint8_t { kRgb, kBgr, kGrey };

  std::optional<int64_t> shorter;     ///< resize=N: the shorter side becomes N
  std::optional<ImageSize> stretch;   ///< resize=HxW: both sides, whatever the picture's ratio
  std::optional<ImageSize> crop;      ///< crop=N, crop=HxW: the middle
  std::optional<double> letterbox;    ///< letterbox, letterbox=PAD: all of it, padded (by 114)
  std::optional<Colours> colours;     ///< rgb, bgr, grey; else grey where the input has one channel
  std::optional<bool> channels_last;  ///< nhwc, nchw; else as the input declares
  std::optional<double> scale;        ///< of pixels 0..255; else 1/255, and 1 for integer inputs
  std::vector<double> mean;           ///< mean=A/B/C: taken from scaled values, of each channel
  std::vector<double> deviation;      ///< std=A/B/C: what is then divided by
};

/// Reads "resize=256,crop=224,bgr,mean=0.5,std=0.25". @throws ConfigError naming the word
ImageSpec parse_image_spec(std::string_view text);

}  // namespace parsimony
