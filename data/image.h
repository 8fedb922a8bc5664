// Decodes JPEG and PNG, and prepares pictures for a network.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace parsimony {

/// A size in pixels.
struct ImageSize {
  int64_t height = 0;
  int64_t width = 0;
  bool operator==(const ImageSize&) const = default;
};

/// Preprocessing of pictures. The network's size is that of `crop`, else of `resize=HxW`, else that
/// of its input. Without any of these words, pictures are scaled to cover that size and cropped to
/// the centre.
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

/// Pixels of [height, width, 3], RGB.
struct Image {
  int64_t height = 0;
  int64_t width = 0;
  std::vector<uint8_t> pixels;
};

/// Maximum number of pixels of a file of this size: an image with more is an error or an attack.
/// Decoding takes up to 9 bytes per pixel; photographs have one byte for 2 to 20 pixels.
constexpr int64_t max_pixels(size_t file_bytes) {
  return (int64_t{5} << 20) + 32 * static_cast<int64_t>(file_bytes);
}

/// Detects the format from the first bytes, not from the file name. Grey becomes RGB, alpha is
/// dropped, 16 bits become 8, CMYK is converted without a profile.
/// @throws ModelError with the byte at which decoding stopped
Image decode_image(const std::string& path, const std::string& bytes);

/// File name extensions of the supported images; case does not matter.
inline constexpr std::array<std::string_view, 3> kImageEndings = {".jpg", ".jpeg", ".png"};

Image decode_jpeg(const std::string& path, const std::string& bytes);
Image decode_png(const std::string& path, const std::string& bytes);

/// Resizes bilinearly, with antialiasing when shrinking.
Image resized(const Image& image, ImageSize size);

/// Returns the size at which the shorter side has this length.
ImageSize with_shorter_side(const Image& image, int64_t length);

/// Crops to the centre; pixels outside of the image are black.
Image cropped(const Image& image, ImageSize size);

/// Pads the image to that size, which it must not exceed, in the centre. @param pad  0..255
Image padded(const Image& image, ImageSize size, double pad);

/// Converts [height, width, 3] to [3, height, width].
void to_planar(const Image& image, std::byte* out);

}  // namespace parsimony
