// JPEG and PNG to pixels, and pixels to another size.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "parsimony/api/data/image_spec.h"

namespace parsimony {

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

/// How the names of such files end, in any case.
inline constexpr std::array<std::string_view, 3> kImageEndings = {".jpg", ".jpeg", ".png"};

Image decode_jpeg(const std::string& path, const std::string& bytes);
Image decode_png(const std::string& path, const std::string& bytes);

/// Bilinear; where it shrinks, over as many pixels as become one.
Image resized(const Image& image, ImageSize size);

/// The size at which the shorter side has this length.
ImageSize with_shorter_side(const Image& image, int64_t length);

/// The middle. What the image does not cover is black.
Image cropped(const Image& image, ImageSize size);

/// The image in the middle of one of that size, which it must not exceed. @param pad  0..255
Image padded(const Image& image, ImageSize size, double pad);

/// [height, width, 3] to [3, height, width].
void to_planar(const Image& image, std::byte* out);

}  // namespace parsimony
