// NumPy's file format. Source: NumPy enhancement proposal 1, "A simple file format for NumPy
// arrays"; versions 1 to 3 differ in the width of the header's length and in its encoding.
#include <charconv>
#include <optional>
#include <string_view>

#include "parsimony/training/data/errors.h"
#include "parsimony/training/data/npy_array_impl.h"

namespace parsimony::training {
namespace {

constexpr std::string_view kMagic = "\x93NUMPY";
constexpr size_t kMaxDims = 32;  // as many as NumPy has

/// Reads the Python dictionary of the header: three keys, with values of three kinds.
class HeaderReader {
 public:
  HeaderReader(NpyArray& array, int64_t begin, int64_t end)
      : array_(array), text_(std::string_view{array.file.bytes}.substr(0, end)), at_(begin) {}

  void read() {
    expect('{');
    while (!accept('}')) {
      const std::string key = text();
      expect(':');
      if (key == "descr") {
        descr_ = text();
      } else if (key == "fortran_order") {
        fortran_ = truth();
      } else if (key == "shape") {
        dims_ = tuple();
      } else {
        throw bad("unknown key \"" + key + '"');
      }
      if (!accept(',') && !next_is('}')) throw bad("wanted a comma");
    }
    if (!descr_ || !fortran_ || !dims_) throw bad("descr, fortran_order or shape is missing");
    if (*fortran_ && dims_->size() > 1) throw errors::fortran_order(array_.file.path);
    array_.dims = *dims_;
    check_count();
    take_descr();
  }

 private:
  ModelError bad(const std::string& why) const {
    return errors::bad_array(array_.file.path, static_cast<int64_t>(at_), why);
  }

  void skip_space() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n')) ++at_;
  }

  bool next_is(char c) {
    skip_space();
    return at_ < text_.size() && text_[at_] == c;
  }

  bool accept(char c) {
    if (!next_is(c)) return false;
    ++at_;
    return true;
  }

  void expect(char c) {
    if (!accept(c)) throw bad(std::string("wanted \"") + c + '"');
  }

  std::string text() {
    const char quote = next_is('"') ? '"' : '\'';
    expect(quote);
    const size_t end = text_.find(quote, at_);
    if (end == std::string_view::npos) throw bad("a text does not end");
    std::string found(text_.substr(at_, end - at_));
    at_ = end + 1;
    return found;
  }

  bool truth() {
    skip_space();
    for (const bool value : {false, true}) {
      const std::string_view word = value ? "True" : "False";
      if (text_.substr(at_).starts_with(word)) {
        at_ += word.size();
        return value;
      }
    }
    throw bad("wanted True or False");
  }

  Shape tuple() {
    Shape dims;
    expect('(');
    while (!accept(')')) {
      skip_space();
      int64_t dim = 0;
      const char* begin = text_.data() + at_;
      const auto [stop, failed] = std::from_chars(begin, text_.data() + text_.size(), dim);
      if (failed != std::errc() || dim < 0) throw bad("wanted a dimension");
      if (dims.size() == kMaxDims) throw bad("too many dimensions");
      at_ += stop - begin;
      dims.push_back(dim);
      if (!accept(',') && !next_is(')')) throw bad("wanted a comma");
    }
    return dims;
  }

  void check_count() const {
    try {
      element_count(array_.dims);
    } catch (const ModelError& error) {
      throw bad(error.what());
    }
  }

  void take_descr() {
    std::string& descr = *descr_;
    const bool one_byte = descr.ends_with("1");
    if (descr.size() != 3 || !(descr[0] == '<' || (descr[0] == '|' && one_byte))) {
      throw errors::bad_element(array_.file.path, descr, "little-endian numbers");
    }
    array_.descr = descr.substr(1);
  }

  NpyArray& array_;
  std::string_view text_;
  size_t at_;
  std::optional<std::string> descr_;
  std::optional<bool> fortran_;
  std::optional<Shape> dims_;
};

}  // namespace

NpyArray read_npy_array(const std::string& path) {
  NpyArray array{read_data_file(path), {}, {}, 0};
  const DataFile& file = array.file;
  if (!file.bytes.starts_with(kMagic)) throw errors::bad_array(path, 0, "wanted \"\\x93NUMPY\"");
  constexpr int64_t kVersionAt = 6;
  constexpr int64_t kLengthAt = 8;
  if (file.size() < kLengthAt + 4) {
    throw errors::ends_early(path, file.size(), kLengthAt + 4, "the beginning of a header");
  }
  const int version = file.byte(kVersionAt);
  if (version < 1 || version > 3) {
    throw errors::bad_array(path, kVersionAt, "version " + std::to_string(version) + " of 1 to 3");
  }
  const int64_t width = version == 1 ? 2 : 4;
  array.data = kLengthAt + width + file.little_endian(kLengthAt, width);
  if (file.size() < array.data) {
    throw errors::ends_early(path, file.size(), array.data, "the header");
  }
  HeaderReader(array, kLengthAt + width, array.data).read();
  if (array.dims.empty() || element_count(array.dims) == 0) throw errors::no_samples(path);
  return array;
}

}  // namespace parsimony::training
