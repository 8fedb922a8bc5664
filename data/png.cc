// libpng reports errors by jumping: no object with a destructor may be in scopes that it jumps
// over.
#include <png.h>

#include <csetjmp>
#include <cstring>
#include <new>

#include "parsimony/data/errors.h"
#include "parsimony/data/image.h"

namespace parsimony {
namespace {

constexpr size_t kWhyLength = 120;

[[noreturn]] void fail(png_structp png, png_const_charp why);
void no_warning(png_structp, png_const_charp) {}

struct PngDecoder {
  explicit PngDecoder(const std::string& file)
      : bytes(file), png(png_create_read_struct(PNG_LIBPNG_VER_STRING, this, fail, no_warning)) {
    if (png != nullptr) info = png_create_info_struct(png);
    if (info == nullptr) throw std::bad_alloc();
  }
  ~PngDecoder() { png_destroy_read_struct(&png, &info, nullptr); }
  PngDecoder(const PngDecoder&) = delete;
  PngDecoder& operator=(const PngDecoder&) = delete;

  const std::string& bytes;
  size_t at = 0;
  char why[kWhyLength] = {};
  png_structp png;
  png_infop info = nullptr;
};

void fail(png_structp png, png_const_charp why) {
  auto* decoder = static_cast<PngDecoder*>(png_get_error_ptr(png));
  std::strncpy(decoder->why, why, kWhyLength - 1);
  png_longjmp(png, 1);
}

void read_bytes(png_structp png, png_bytep out, size_t count) {
  auto* decoder = static_cast<PngDecoder*>(png_get_io_ptr(png));
  if (count > decoder->bytes.size() - decoder->at) {
    decoder->at = decoder->bytes.size();
    png_error(png, "unexpected end of file");
  }
  std::memcpy(out, decoder->bytes.data() + decoder->at, count);
  decoder->at += count;
}

/// Requests 8-bit RGB with the stored values, without gamma correction.
bool read_header(PngDecoder& decoder) {
  if (setjmp(png_jmpbuf(decoder.png)) != 0) return false;
  png_set_read_fn(decoder.png, &decoder, read_bytes);
  png_read_info(decoder.png, decoder.info);
  png_set_expand(decoder.png);
  png_set_scale_16(decoder.png);
  png_set_gray_to_rgb(decoder.png);
  png_set_strip_alpha(decoder.png);
  png_set_interlace_handling(decoder.png);
  png_read_update_info(decoder.png, decoder.info);
  return true;
}

bool read_pixels(PngDecoder& decoder, png_bytep* rows) {
  if (setjmp(png_jmpbuf(decoder.png)) != 0) return false;
  png_read_image(decoder.png, rows);
  png_read_end(decoder.png, nullptr);
  return true;
}

}  // namespace

Image decode_png(const std::string& path, const std::string& bytes) {
  PngDecoder decoder(bytes);
  const auto failed = [&](const char* why) {
    return errors::damaged_image(path, static_cast<int64_t>(decoder.at), why);
  };
  if (!read_header(decoder)) throw failed(decoder.why);
  Image image;
  image.height = png_get_image_height(decoder.png, decoder.info);
  image.width = png_get_image_width(decoder.png, decoder.info);
  if (image.height * image.width > max_pixels(bytes.size())) {
    throw failed("too many pixels for a file of its size");
  }
  image.pixels.resize(image.height * image.width * 3);
  std::vector<png_bytep> rows;
  for (int64_t y = 0; y < image.height; ++y) {
    rows.push_back(image.pixels.data() + y * image.width * 3);
  }
  if (!read_pixels(decoder, rows.data())) throw failed(decoder.why);
  return image;
}

}  // namespace parsimony
