// JPEG and PNG to pixels, and pixels to another size.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace parsimony::training {

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

Image decode_jpeg(const std::string& path, const std::string& bytes);
Image decode_png(const std::string& path, const std::string& bytes);

/// Scales so that the shorter side becomes `size`, and keeps the middle of the longer one.
/// Bilinear; where it shrinks, over as many pixels as become one. The result is planar, [3, size,
/// size].
void resize_image(const Image& image, int64_t size, std::byte* out);

/// Without scaling: [height, width, 3] to [3, height, width].
void to_planar(const Image& image, std::byte* out);

}  // namespace parsimony::training
