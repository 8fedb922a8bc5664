#include "parsimony/api/data/image_spec.h"

#include "parsimony/api/errors.h"
#include "parsimony/base/parse.h"

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

}  // namespace parsimony
