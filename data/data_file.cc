#include <zlib.h>

#include <algorithm>
#include <filesystem>
#include <limits>
#include <memory>
#include <sstream>

#include "parsimony/base/files.h"
#include "parsimony/data/data_file_impl.h"
#include "parsimony/data/errors.h"

namespace parsimony {
namespace {

constexpr int kGzipOnly = 16 + MAX_WBITS;
constexpr size_t kChunk = size_t{1} << 20;

/// A byte becomes 1,032 at most; data sets become 2 to 20.
constexpr size_t most_unpacked(size_t packed) { return (size_t{2} << 20) + 64 * packed; }

ModelError damaged_gzip(std::string_view file, int64_t offset, std::string_view why) {
  return ModelError(file, ": byte ", offset, ": damaged gzip data: ", why);
}

/// Files may be several gzip members, one after the other.
std::string inflated(const std::string& path, std::string& packed) {
  z_stream stream{};
  if (inflateInit2(&stream, kGzipOnly) != Z_OK) throw std::bad_alloc();
  const std::unique_ptr<z_stream, decltype(&inflateEnd)> owner(&stream, &inflateEnd);
  std::string out;
  size_t at = 0;
  const auto damaged = [&](std::string_view why) {
    return damaged_gzip(path, static_cast<int64_t>(at), why);
  };
  int status = Z_STREAM_END;
  while (at < packed.size() || status != Z_STREAM_END) {
    if (status == Z_STREAM_END) inflateReset(&stream);
    const size_t filled = out.size();
    if (filled > most_unpacked(packed.size())) {
      throw damaged("it unpacks to more than 2 MB and 64 times its size");
    }
    out.resize(filled + kChunk);
    stream.next_in = reinterpret_cast<Bytef*>(packed.data()) + at;
    const size_t offered = std::min<size_t>(packed.size() - at, std::numeric_limits<uInt>::max());
    stream.avail_in = static_cast<uInt>(offered);
    stream.next_out = reinterpret_cast<Bytef*>(out.data()) + filled;
    stream.avail_out = kChunk;
    status = inflate(&stream, Z_NO_FLUSH);
    at += offered - stream.avail_in;
    out.resize(out.size() - stream.avail_out);
    if (status == Z_BUF_ERROR) throw damaged("the file ends in the middle of it");
    if (status != Z_OK && status != Z_STREAM_END) {
      throw damaged(stream.msg != nullptr ? stream.msg : "cannot be decompressed");
    }
  }
  return out;
}

}  // namespace

DataFile read_data_file(const std::string& path) {
  DataFile file{path, read_file(path)};
  if (path.ends_with(".gz")) {
    if (file.bytes.empty()) throw damaged_gzip(path, 0, "the file is empty");
    file.bytes = inflated(path, file.bytes);
  }
  return file;
}

std::optional<std::string> plain_or_gzip(const std::string& path) {
  std::error_code ignored;
  for (const char* ending : {"", ".gz"}) {
    if (std::filesystem::is_regular_file(path + ending, ignored)) return path + ending;
  }
  return {};
}

std::vector<std::string> lines_of(const std::string& path) {
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(path, ignored)) return {};
  std::istringstream text(read_file(path));
  std::vector<std::string> lines;
  for (std::string line; std::getline(text, line);) {
    if (line.ends_with('\r')) line.pop_back();
    if (!line.empty()) lines.push_back(line);
  }
  return lines;
}

}  // namespace parsimony
