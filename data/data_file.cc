#include "parsimony/data/data_file.h"

#include <zlib.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <limits>
#include <memory>
#include <sstream>
#include <utility>

#include "parsimony/base/files.h"
#include "parsimony/data/errors.h"

namespace parsimony {

namespace fs = std::filesystem;

namespace {

constexpr int kGzipOnly = 16 + MAX_WBITS;
constexpr size_t kChunk = size_t{1} << 20;

/// The limit for decompressed sizes: a byte becomes at most 1,032; in data sets 2 to 20.
constexpr size_t most_unpacked(size_t packed) { return (size_t{2} << 20) + 64 * packed; }

ModelError damaged_gzip(std::string_view file, int64_t offset, std::string_view why) {
  return ModelError(file, ": byte ", offset, ": damaged gzip data: ", why);
}

/// Decompresses a file of one or more gzip members.
std::string inflated(const std::string& path, std::string_view packed) {
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
      throw damaged("it decompresses to more than 2 MB and 64 times its size");
    }
    out.resize(filled + kChunk);
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(packed.data() + at));
    const size_t offered = std::min<size_t>(packed.size() - at, std::numeric_limits<uInt>::max());
    stream.avail_in = static_cast<uInt>(offered);
    stream.next_out = reinterpret_cast<Bytef*>(out.data()) + filled;
    stream.avail_out = kChunk;
    status = inflate(&stream, Z_NO_FLUSH);
    at += offered - stream.avail_in;
    out.resize(out.size() - stream.avail_out);
    if (status == Z_BUF_ERROR) throw damaged("unexpected end of file");
    if (status != Z_OK && status != Z_STREAM_END) {
      throw damaged(stream.msg != nullptr ? stream.msg : "cannot be decompressed");
    }
  }
  return out;
}

}  // namespace

DataFile::DataFile(std::string path) : path_(std::move(path)) {
  const auto file = std::make_shared<const MappedFile>(path_);
  owner_ = file;
  bytes_ = file->bytes();
  if (!path_.ends_with(".gz")) return;
  if (bytes_.empty()) throw damaged_gzip(path_, 0, "the file is empty");
  const auto content = std::make_shared<const std::string>(inflated(path_, bytes_));
  owner_ = content;
  bytes_ = *content;
}

std::optional<std::string> plain_or_gzip(const std::string& path) {
  std::error_code ignored;
  for (const char* ending : {"", ".gz"}) {
    if (fs::is_regular_file(path + ending, ignored)) return path + ending;
  }
  return {};
}

std::vector<std::string> lines_of(const std::string& path) {
  std::error_code ignored;
  if (!fs::is_regular_file(path, ignored)) return {};
  std::istringstream text(read_file(path));
  std::vector<std::string> lines;
  for (std::string line; std::getline(text, line);) {
    if (line.ends_with('\r')) line.pop_back();
    if (!line.empty()) lines.push_back(line);
  }
  return lines;
}

bool ends_like(std::string_view name, std::span<const std::string_view> endings) {
  return std::ranges::any_of(endings, [&](std::string_view ending) {
    return name.size() >= ending.size() &&
           std::ranges::equal(
               name.substr(name.size() - ending.size()), ending,
               [](unsigned char found, char expected) { return std::tolower(found) == expected; });
  });
}

std::vector<std::string> files_at(const std::string& path,
                                  std::span<const std::string_view> endings) {
  std::error_code failed;
  if (fs::is_regular_file(path, failed)) return {path};
  std::vector<std::string> found;
  fs::recursive_directory_iterator at(path, fs::directory_options::follow_directory_symlink,
                                      failed);
  for (; !failed && at != fs::recursive_directory_iterator(); at.increment(failed)) {
    const std::string name = at->path().filename().string();
    if (name.starts_with('.')) {
      at.disable_recursion_pending();
      continue;
    }
    std::error_code ignored;
    if (!ends_like(name, endings) || !at->is_regular_file(ignored)) continue;
    found.push_back(at->path().string());
  }
  if (failed) throw errors::cannot_list(path, failed.message());
  std::ranges::sort(found);
  return found;
}

std::vector<std::string> names_in(const std::string& folder, bool folders) {
  std::error_code failed;
  std::vector<std::string> names;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, failed)) {
    std::error_code ignored;
    const std::string name = entry.path().filename().string();
    if (!name.starts_with('.') && entry.is_directory(ignored) == folders) names.push_back(name);
  }
  if (failed) throw errors::cannot_list(folder, failed.message());
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace parsimony
