// libjpeg reports errors by jumping: no object with a destructor may be in scopes that it jumps
// over.
#include <cstddef>
#include <cstdio>
// jpeglib.h needs both of the above.
#include <jerror.h>
#include <jpeglib.h>

#include <algorithm>
#include <csetjmp>

#include "parsimony/data/errors.h"
#include "parsimony/data/image.h"

namespace parsimony {
namespace {

struct Failure {
  jpeg_error_mgr manager;  // first: libjpeg knows us by this
  std::jmp_buf jump;
  bool at_end;  // of the file
  char why[JMSG_LENGTH_MAX];
};

[[noreturn]] void fail(j_common_ptr jpeg) {
  auto* failure = reinterpret_cast<Failure*>(jpeg->err);
  jpeg->err->format_message(jpeg, failure->why);
  failure->at_end = jpeg->err->msg_code == JWRN_JPEG_EOF;
  std::longjmp(failure->jump, 1);
}

/// Treats warnings as missing pixels, except those that are common in real files.
void warn(j_common_ptr jpeg, int level) {
  if (level >= 0) return;
  switch (jpeg->err->msg_code) {
    case JWRN_ADOBE_XFORM:
    case JWRN_EXTRANEOUS_DATA:
    case JWRN_JFIF_MAJOR:
    case JWRN_TOO_MUCH_DATA:
      return;
    default:
      fail(jpeg);
  }
}

void no_output(j_common_ptr) {}

/// A progressive file may repaint the whole image with every few bytes.
void check_scans(j_common_ptr jpeg) {
  constexpr int kMostScans = 500;
  if (!jpeg->is_decompressor) return;
  const auto* decompress = reinterpret_cast<j_decompress_ptr>(jpeg);
  if (decompress->input_scan_number > kMostScans) {
    jpeg->err->msg_code = JERR_BAD_PROGRESSION;
    fail(jpeg);
  }
}

struct Decoder {
  Decoder() {
    progress.progress_monitor = check_scans;
    jpeg.err = jpeg_std_error(&failure.manager);
    failure.manager.error_exit = fail;
    failure.manager.emit_message = warn;
    failure.manager.output_message = no_output;
  }
  ~Decoder() { jpeg_destroy_decompress(&jpeg); }
  Decoder(const Decoder&) = delete;
  Decoder& operator=(const Decoder&) = delete;

  ModelError error(const std::string& path, size_t size, const char* why) const {
    // libjpeg tells where it last began a block of the compressed pixels.
    const size_t left = jpeg.src == nullptr || failure.at_end ? 0 : jpeg.src->bytes_in_buffer;
    return errors::damaged_image(path, static_cast<int64_t>(size - std::min(left, size)), why);
  }

  jpeg_decompress_struct jpeg{};
  jpeg_progress_mgr progress{};
  Failure failure{};
  bool cmyk = false;
};

bool read_header(Decoder& decoder, const std::string& bytes) {
  if (setjmp(decoder.failure.jump) != 0) return false;
  jpeg_create_decompress(&decoder.jpeg);
  decoder.jpeg.progress = &decoder.progress;
  jpeg_mem_src(&decoder.jpeg, reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size());
  jpeg_read_header(&decoder.jpeg, TRUE);
  const J_COLOR_SPACE space = decoder.jpeg.jpeg_color_space;
  decoder.cmyk = space == JCS_CMYK || space == JCS_YCCK;
  decoder.jpeg.out_color_space = decoder.cmyk ? JCS_CMYK : JCS_RGB;
  return true;
}

/// `row` has room for one line of four channels.
bool read_pixels(Decoder& decoder, uint8_t* row, uint8_t* out) {
  if (setjmp(decoder.failure.jump) != 0) return false;
  jpeg_decompress_struct& jpeg = decoder.jpeg;
  jpeg_start_decompress(&jpeg);
  const size_t width = jpeg.output_width;
  while (jpeg.output_scanline < jpeg.output_height) {
    uint8_t* to = out + 3 * width * jpeg.output_scanline;
    JSAMPROW line = decoder.cmyk ? row : to;
    jpeg_read_scanlines(&jpeg, &line, 1);
    if (!decoder.cmyk) continue;
    // Almost all such files come from Adobe's products, which store them inverted.
    for (size_t x = 0; x < width; ++x) {
      for (size_t c = 0; c < 3; ++c) {
        to[3 * x + c] = static_cast<uint8_t>((row[4 * x + c] * row[4 * x + 3] + 127) / 255);
      }
    }
  }
  jpeg_finish_decompress(&jpeg);
  return true;
}

}  // namespace

Image decode_jpeg(const std::string& path, const std::string& bytes) {
  Decoder decoder;
  const auto failed = [&](const char* why) { return decoder.error(path, bytes.size(), why); };
  if (!read_header(decoder, bytes)) throw failed(decoder.failure.why);
  Image image;
  image.height = decoder.jpeg.image_height;
  image.width = decoder.jpeg.image_width;
  if (image.height * image.width > max_pixels(bytes.size())) {
    throw failed("too many pixels for a file of its size");
  }
  image.pixels.resize(image.height * image.width * 3);
  std::vector<uint8_t> row(image.width * 4);
  if (!read_pixels(decoder, row.data(), image.pixels.data())) throw failed(decoder.failure.why);
  return image;
}

}  // namespace parsimony
