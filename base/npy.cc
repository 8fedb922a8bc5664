// Source: NumPy enhancement proposal 1, "A simple file format for NumPy arrays"; versions 1 to 3
// differ in the width of the header's length and in its encoding.
#include "parsimony/base/npy.h"

#include <charconv>
#include <optional>

namespace parsimony {
namespace {

constexpr std::string_view kMagic = "\x93NUMPY";
constexpr size_t kMaxDims = 32;  // as many as NumPy has

std::string at(std::string_view file, int64_t offset) {
  return std::string(file) + ": byte " + std::to_string(offset) + ": ";
}

UnsupportedError fortran_order(std::string_view file) {
  return UnsupportedError(std::string(file) +
                          ": the array is in Fortran order; save numpy.ascontiguousarray(array)");
}

/// Reads the Python dictionary of the header: three keys, with values of three kinds.
class HeaderReader {
 public:
  HeaderReader(std::string_view file, std::string_view text, int64_t begin)
      : file_(file), text_(text), at_(begin) {}

  void read(NpyHeader& header) {
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
      if (!accept(',') && !next_is('}')) throw bad("expected a comma");
    }
    if (!descr_ || !fortran_ || !dims_) throw bad("descr, fortran_order or shape is missing");
    if (*fortran_ && dims_->size() > 1) throw fortran_order(file_);
    header.dims = *dims_;
    check_count(header.dims);
    header.descr = bare_descr();
  }

 private:
  ModelError bad(const std::string& why) const {
    return errors::bad_array(file_, static_cast<int64_t>(at_), why);
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
    if (!accept(c)) throw bad(std::string("expected \"") + c + '"');
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
    throw bad("expected True or False");
  }

  Shape tuple() {
    Shape dims;
    expect('(');
    while (!accept(')')) {
      skip_space();
      int64_t dim = 0;
      const char* begin = text_.data() + at_;
      const auto [stop, failed] = std::from_chars(begin, text_.data() + text_.size(), dim);
      if (failed != std::errc() || dim < 0) throw bad("expected a dimension");
      if (dims.size() == kMaxDims) throw bad("too many dimensions");
      at_ += stop - begin;
      dims.push_back(dim);
      if (!accept(',') && !next_is(')')) throw bad("expected a comma");
    }
    return dims;
  }

  void check_count(const Shape& dims) const {
    try {
      element_count(dims);
    } catch (const ModelError& error) {
      throw bad(error.what());
    }
  }

  std::string bare_descr() const {
    const std::string& descr = *descr_;
    const bool one_byte = descr.ends_with("1");
    if (descr.size() != 3 || !(descr[0] == '<' || (descr[0] == '|' && one_byte))) {
      throw errors::bad_element(file_, descr, "little-endian numbers");
    }
    return descr.substr(1);
  }

  std::string_view file_;
  std::string_view text_;
  size_t at_;
  std::optional<std::string> descr_;
  std::optional<bool> fortran_;
  std::optional<Shape> dims_;
};

int64_t little_endian(std::string_view bytes, int64_t offset, int64_t count) {
  int64_t value = 0;
  for (int64_t i = count - 1; i >= 0; --i) {
    value = value << 8 | static_cast<uint8_t>(bytes[static_cast<size_t>(offset + i)]);
  }
  return value;
}

}  // namespace

namespace errors {

ModelError ends_early(std::string_view file, int64_t size, int64_t expected,
                      std::string_view what) {
  return ModelError(at(file, size) + "the file ends here; expected " + std::to_string(expected) +
                    " bytes for " + std::string(what));
}

ModelError bad_array(std::string_view file, int64_t offset, std::string_view why) {
  return ModelError(at(file, offset) + "not a NumPy array: " + std::string(why));
}

UnsupportedError bad_element(std::string_view file, std::string_view descr,
                             std::string_view expected) {
  return UnsupportedError(std::string(file) + ": elements of type " + in_quotes(descr) +
                          ", expected " + std::string(expected));
}

}  // namespace errors

NpyHeader parse_npy(std::string_view bytes, std::string_view file_name) {
  if (!bytes.starts_with(kMagic)) {
    throw errors::bad_array(file_name, 0, "expected \"\\x93NUMPY\"");
  }
  constexpr int64_t kVersionAt = 6;
  constexpr int64_t kLengthAt = 8;
  const auto size = static_cast<int64_t>(bytes.size());
  if (size < kLengthAt + 4) {
    throw errors::ends_early(file_name, size, kLengthAt + 4, "the beginning of a header");
  }
  const int version = static_cast<uint8_t>(bytes[kVersionAt]);
  if (version < 1 || version > 3) {
    throw errors::bad_array(file_name, kVersionAt,
                            "version " + std::to_string(version) + " of 1 to 3");
  }
  const int64_t width = version == 1 ? 2 : 4;
  NpyHeader header;
  header.data = kLengthAt + width + little_endian(bytes, kLengthAt, width);
  if (size < header.data) throw errors::ends_early(file_name, size, header.data, "the header");
  HeaderReader(file_name, bytes.substr(0, static_cast<size_t>(header.data)), kLengthAt + width)
      .read(header);
  return header;
}

}  // namespace parsimony
