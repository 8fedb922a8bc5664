#include <algorithm>
#include <cmath>
#include <random>

#include "parsimony/base/files.h"
#include "parsimony/data/data_file.h"
#include "parsimony/data/errors.h"
#include "parsimony/data/formats_impl.h"
#include "parsimony/data/image.h"

namespace parsimony {
namespace {

/// Prepares pictures for a network.
class Preparation {
 public:
  Preparation(std::string_view text, const Value& input) : spec_(parse_image_spec(text)) {
    const Shape declared = input.declared.value_or(Shape{-1, 3, -1, -1});
    if (declared.size() != 4) {
      throw ConfigError("images: input ", in_quotes(input.name), " ", to_string(declared),
                        " does not take images, which have four axes");
    }
    const auto has_channels = [&](size_t axis) {
      return declared[axis] == 3 || declared[axis] == 1;
    };
    last_ = spec_.channels_last.value_or(!has_channels(1) && has_channels(3));
    const int64_t channels = declared[last_ ? 3 : 1];
    using enum ImageSpec::Colours;
    colours_ = spec_.colours.value_or(channels == 1 ? kGrey : kRgb);
    const ImageSize open{declared[last_ ? 1 : 2], declared[last_ ? 2 : 3]};
    size_ = spec_.crop ? *spec_.crop : spec_.stretch.value_or(open);
    if (size_.height < 1 && spec_.shorter) size_ = {*spec_.shorter, *spec_.shorter};
    if (size_.height < 1 || size_.width < 1) {
      throw ConfigError("images: input ", in_quotes(input.name), " ", to_string(declared),
                        " has a dynamic size (-1): pass --image resize=HxW or --input");
    }
    scale_ = spec_.scale.value_or(is_floating(input.dtype) ? 1.0 / 255 : 1);
    check_count(spec_.mean, text);
    check_count(spec_.deviation, text);
  }

  Shape dims() const {
    const int64_t c = channels();
    return last_ ? Shape{size_.height, size_.width, c} : Shape{c, size_.height, size_.width};
  }

  void write(const Image& picture, float* out) const {
    const Image image = fitted(picture);
    const int64_t plane = size_.height * size_.width;
    const int64_t count = channels();
    for (int64_t c = 0; c < count; ++c) {
      const double mean = spec_.mean.empty() ? 0 : spec_.mean[spec_.mean.size() == 1 ? 0 : c];
      const double deviation =
          spec_.deviation.empty() ? 1 : spec_.deviation[spec_.deviation.size() == 1 ? 0 : c];
      for (int64_t i = 0; i < plane; ++i) {
        const double value = pixel(image.pixels.data() + 3 * i, c) * scale_;
        out[last_ ? i * count + c : c * plane + i] = static_cast<float>((value - mean) / deviation);
      }
    }
  }

 private:
  int64_t channels() const { return colours_ == ImageSpec::Colours::kGrey ? 1 : 3; }

  void check_count(const std::vector<double>& values, std::string_view text) const {
    if (values.size() > 1 && static_cast<int64_t>(values.size()) != channels()) {
      throw errors::bad_image_spec(text);
    }
  }

  double pixel(const uint8_t* rgb, int64_t c) const {
    using enum ImageSpec::Colours;
    // The luma of JPEG: ITU-T T.871.
    if (colours_ == kGrey) return 0.299 * rgb[0] + 0.587 * rgb[1] + 0.114 * rgb[2];
    return rgb[colours_ == kBgr ? 2 - c : c];
  }

  Image fitted(const Image& picture) const {
    if (spec_.letterbox) {
      const ImageSize inside = scaled(picture, /*cover=*/false);
      return padded(resized(picture, inside), size_, *spec_.letterbox);
    }
    if (spec_.stretch) return cropped(resized(picture, *spec_.stretch), size_);
    if (spec_.crop && !spec_.shorter) return cropped(picture, size_);
    if (!spec_.shorter) return cropped(resized(picture, scaled(picture, /*cover=*/true)), size_);
    return cropped(resized(picture, with_shorter_side(picture, *spec_.shorter)), size_);
  }

  /// Returns the size at which the picture covers that of the network, or fits inside.
  ImageSize scaled(const Image& picture, bool cover) const {
    const double down = static_cast<double>(size_.height) / static_cast<double>(picture.height);
    const double across = static_cast<double>(size_.width) / static_cast<double>(picture.width);
    const double factor = cover ? std::max(down, across) : std::min(down, across);
    const auto side = [&](int64_t length, int64_t expected) {
      const int64_t found = std::llround(static_cast<double>(length) * factor);
      return cover ? std::max(found, expected) : std::clamp<int64_t>(found, 1, expected);
    };
    return {side(picture.height, size_.height), side(picture.width, size_.width)};
  }

  ImageSpec spec_;
  ImageSize size_;
  ImageSpec::Colours colours_ = ImageSpec::Colours::kRgb;
  bool last_ = false;
  double scale_ = 1;
};

class Images final : public InputSource {
 public:
  Images(const std::string& folder, std::string_view spec, const Value& input)
      : preparation_(spec, input), files_(files_at(folder, kImageEndings)) {
    if (files_.empty()) throw errors::no_files_below(folder, ".jpg, .jpeg or .png");
    // Folders are often sorted by what they show.
    std::shuffle(files_.begin(), files_.end(), std::minstd_rand(1));
  }

  int64_t samples() const override { return static_cast<int64_t>(files_.size()); }

  TensorBytes rows(int64_t first, int64_t count) const override {
    TensorBytes result;
    result.dtype = DType::kFloat32;
    result.dims = preparation_.dims();
    const int64_t stride = element_count(result.dims);
    result.dims.insert(result.dims.begin(), count);
    result.bytes.resize(static_cast<size_t>(count * stride) * sizeof(float));
    auto* const out = reinterpret_cast<float*>(result.bytes.data());
    for (int64_t i = 0; i < count; ++i) {
      const std::string& path = files_[static_cast<size_t>(first + i)];
      preparation_.write(decode_image(path, read_file(path)), out + i * stride);
    }
    return result;
  }

 private:
  Preparation preparation_;
  std::vector<std::string> files_;
};

}  // namespace

std::unique_ptr<InputSource> open_images(const std::string& place, const Value& input,
                                         std::string_view image) {
  return std::make_unique<Images>(place, image, input);
}

}  // namespace parsimony
