// A file of text: windows of bytes, each labelled with the byte that follows it.
#include <algorithm>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "parsimony/base/npy.h"
#include "parsimony/base/parse.h"
#include "parsimony/data/data_file.h"
#include "parsimony/data/errors.h"
#include "parsimony/data/formats_impl.h"

namespace parsimony {
namespace {

constexpr int64_t kLength = 128;
constexpr int64_t kBytes = 256;

/// Parses "FILE,length=256,labels"; the name may contain commas.
struct TextPlace {
  std::string path;
  std::optional<int64_t> length;
  bool labels = false;

  explicit TextPlace(const std::string& place) : path(place) {
    while (take_word(place)) {
    }
  }

 private:
  bool take_word(const std::string& place) {
    constexpr std::string_view kOption = "length=";
    const size_t at = path.rfind(',');
    if (at == std::string::npos) return false;
    const std::string_view word = std::string_view(path).substr(at + 1);
    if (word == "labels") {
      labels = true;
    } else if (word.starts_with(kOption)) {
      length = number_of<int64_t>(word.substr(kOption.size()));
      if (length.value_or(0) < 1) {
        throw errors::bad_spec("text:" + place, "text:FILE,length=N, with N of at least 1");
      }
    } else {
      return false;
    }
    path.resize(at);
    return true;
  }
};

/// A file in consecutive windows of `length` bytes.
class TextWindows {
 public:
  TextWindows(const std::string& path, int64_t length) : file_(path), length_(length) {}

  int64_t bytes() const { return file_.size(); }
  int64_t count() const { return bytes() / length_; }
  /// Returns the number of windows that are followed by a byte.
  int64_t labelled() const { return std::max<int64_t>(0, bytes() - 1) / length_; }

  std::span<const std::byte> values(int64_t first, int64_t count) const {
    return file_.part(first * length_, count * length_);
  }

  std::vector<int64_t> labels(int64_t first, int64_t count) const {
    std::vector<int64_t> labels;
    labels.reserve(count * length_);
    for (int64_t at = first * length_; at < (first + count) * length_; ++at) {
      labels.push_back(file_.byte(at + 1));
    }
    return labels;
  }

  Samples samples(int64_t first, int64_t count) const {
    Samples samples;
    samples.dims = {length_};
    samples.label_dims = {length_};
    const auto part = values(first, count);
    samples.values.assign(part.begin(), part.end());
    samples.labels = labels(first, count);
    return samples;
  }

 private:
  DataFile file_;
  int64_t length_;
};

class Text final : public InputSource {
 public:
  Text(const TextPlace& place, const Value& input)
      : window_(window_of(place.length ? with_length(input, *place.length) : input, {},
                          "text:FILE,length=N or --input")),
        windows_(place.path, window_.back()),
        labelled_(place.labels) {
    if (samples() > 0) return;
    throw too_short(place.path, windows_.bytes(), window_.back() + (labelled_ ? 1 : 0));
  }

  int64_t samples() const override { return labelled_ ? windows_.labelled() : windows_.count(); }

  TensorBytes rows(int64_t first, int64_t count) const override {
    TensorBytes result = empty_rows(DType::kUInt8, window_, count);
    std::ranges::copy(windows_.values(first, count), result.bytes.begin());
    return result;
  }

  std::optional<Shape> label_dims() const override {
    return labelled_ ? std::optional(Shape{window_.back()}) : std::nullopt;
  }
  std::vector<int64_t> labels(int64_t first, int64_t count) const override {
    return windows_.labels(first, count);
  }

 private:
  static Value with_length(Value input, int64_t length) {
    if (!input.declared) input.declared = Shape{-1, -1};
    if (!input.declared->empty()) input.declared->back() = length;
    return input;
  }

  Shape window_;
  TextWindows windows_;
  bool labelled_;
};

}  // namespace

Dataset read_text(const std::string& place, const DatasetOptions& options) {
  const TextPlace text(place);
  const int64_t length = text.length.value_or(kLength);
  const TextWindows windows(text.path, length);
  const int64_t count = windows.labelled();
  if (count == 0) {
    throw errors::ends_early(text.path, windows.bytes(), length + 1, "a window and its labels");
  }
  Dataset data;
  data.name = "text";
  data.tokens = true;
  data.classes = numbers_from(0, kBytes);
  const int64_t test = test_part_of(count, options, "text:" + place);
  data.train = windows.samples(0, count - test);
  data.test = windows.samples(count - test, test);
  if (!text.length) {
    data.note = "text:" + place + " is cut into windows of " + std::to_string(length) +
                " bytes; length=N sets another length";
  }
  return data;
}

std::unique_ptr<InputSource> open_text(const std::string& place, const Value& input,
                                       std::string_view) {
  return std::make_unique<Text>(TextPlace(place), input);
}

}  // namespace parsimony
