#include "parsimony/checkpoints/zip.h"

#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <concepts>
#include <cstring>
#include <utility>

#include "parsimony/base/errors.h"

namespace parsimony {
namespace {

ModelError bad_zip(std::string_view file, std::string_view why) {
  return ModelError(file, ": zip archive: ", why);
}

constexpr std::string_view kLocalMark = "PK\3\4";
constexpr std::string_view kEntryMark = "PK\1\2";
constexpr std::string_view kEndMark = "PK\5\6";
constexpr std::string_view kEnd64Mark = "PK\6\6";
constexpr std::string_view kLocatorMark = "PK\6\7";
constexpr size_t kLocalSize = 30;
constexpr size_t kEntrySize = 46;
constexpr size_t kEndSize = 22;
constexpr size_t kEnd64Size = 56;
constexpr size_t kLocatorSize = 20;
constexpr size_t kLongestComment = 0xffff;
constexpr uint16_t kStored = 0;
constexpr uint16_t kDeflated = 8;
constexpr uint16_t kZip64Field = 1;
constexpr uint16_t kPaddingField = 0x4246;  // "FB", as PyTorch pads
constexpr uint16_t kVersion64 = 45;
constexpr uint16_t kUtf8 = 0x0800;
constexpr uint16_t kSentinel16 = 0xffff;
constexpr uint32_t kSentinel32 = 0xffffffff;
constexpr size_t kAlignment = 64;
constexpr size_t kCrcAt = 14;  // in a local header

// A weight that is all zeros may well expand a thousandfold; an archive that needs more memory than
// this for it is an attack.
constexpr uint64_t kSafeSize = uint64_t{256} << 20;
constexpr uint64_t kLargestExpansion = 100;

template <std::unsigned_integral T>
T number_at(std::string_view bytes, size_t at) {
  T value = 0;
  if (at <= bytes.size() && bytes.size() - at >= sizeof(T)) {
    std::memcpy(&value, bytes.data() + at, sizeof(T));
  }
  return value;
}

bool is_at(std::string_view bytes, uint64_t at, std::string_view mark) {
  return at <= bytes.size() && bytes.substr(at, mark.size()) == mark;
}

template <std::unsigned_integral T>
void append(std::string& to, T value) {
  to.append(reinterpret_cast<const char*>(&value), sizeof(T));
}

/// The end of the directory; npos if there is none.
size_t find_end(std::string_view bytes) {
  if (bytes.size() < kEndSize) return std::string_view::npos;
  const size_t last = bytes.size() - kEndSize;
  const size_t first = last - std::min(last, kLongestComment);
  const size_t found = bytes.substr(first).rfind(kEndMark);
  return found == std::string_view::npos ? found : first + found;
}

struct Directory {
  uint64_t count = 0;
  uint64_t at = 0;
};

Directory find_directory(std::string_view bytes, const std::string& file) {
  const size_t end = find_end(bytes);
  if (end == std::string_view::npos) {
    throw bad_zip(file, "it has no directory at its end; was it truncated?");
  }
  Directory directory{number_at<uint16_t>(bytes, end + 10), number_at<uint32_t>(bytes, end + 16)};
  if (end >= kLocatorSize && is_at(bytes, end - kLocatorSize, kLocatorMark)) {
    const auto end64 = number_at<uint64_t>(bytes, end - kLocatorSize + 8);
    if (!is_at(bytes, end64, kEnd64Mark) || bytes.size() - end64 < kEnd64Size) {
      throw bad_zip(file, "its 64-bit directory is not at byte " + std::to_string(end64));
    }
    directory = {number_at<uint64_t>(bytes, end64 + 32), number_at<uint64_t>(bytes, end64 + 48)};
  }
  return directory;
}

/// Replaces the sizes that stand in the 64-bit field instead.
void read_zip64(std::string_view fields, ZipEntry& entry) {
  while (fields.size() >= 4) {
    const size_t size = std::min<size_t>(number_at<uint16_t>(fields, 2), fields.size() - 4);
    if (number_at<uint16_t>(fields, 0) == kZip64Field) {
      size_t at = 4;
      for (uint64_t* value : {&entry.size, &entry.packed, &entry.header}) {
        if (*value != kSentinel32 || at + 8 > size + 4) continue;
        *value = number_at<uint64_t>(fields, at);
        at += 8;
      }
      return;
    }
    fields.remove_prefix(4 + size);
  }
}

std::string inflate_all(std::string_view packed, uint64_t size) {
  std::string content(size, '\0');
  z_stream stream{};
  if (inflateInit2(&stream, -MAX_WBITS) != Z_OK) return {};
  constexpr uint64_t kPiece = uint64_t{1} << 30;  // zlib counts in 32 bits
  uint64_t read = 0;
  uint64_t written = 0;
  int status = Z_OK;
  while (status == Z_OK) {
    const uint64_t in = std::min<uint64_t>(packed.size() - read, kPiece);
    const uint64_t out = std::min<uint64_t>(size - written, kPiece);
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(packed.data() + read));
    stream.avail_in = static_cast<uInt>(in);
    stream.next_out = reinterpret_cast<Bytef*>(content.data() + written);
    stream.avail_out = static_cast<uInt>(out);
    status = inflate(&stream, Z_NO_FLUSH);
    read += in - stream.avail_in;
    written += out - stream.avail_out;
    if (in == stream.avail_in && out == stream.avail_out) break;
  }
  inflateEnd(&stream);
  if (status != Z_STREAM_END || written != size) content.clear();
  return content;
}

uint32_t crc_of(std::string_view bytes, uint32_t begin = 0) {
  return static_cast<uint32_t>(
      crc32_z(begin, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()));
}

}  // namespace

ZipReader::ZipReader(std::string_view bytes, std::string file_name)
    : bytes_(bytes), file_name_(std::move(file_name)) {
  const Directory directory = find_directory(bytes_, file_name_);
  uint64_t at = directory.at;
  for (uint64_t i = 0; i < directory.count; ++i) {
    if (!is_at(bytes_, at, kEntryMark) || bytes_.size() - at < kEntrySize) {
      throw bad_zip(file_name_, "entry " + std::to_string(i) + " of its directory is not at byte " +
                                    std::to_string(at));
    }
    const size_t name = number_at<uint16_t>(bytes_, at + 28);
    const size_t extra = number_at<uint16_t>(bytes_, at + 30);
    const size_t comment = number_at<uint16_t>(bytes_, at + 32);
    ZipEntry entry{std::string(bytes_.substr(at + kEntrySize, name)),
                   number_at<uint16_t>(bytes_, at + 10),
                   number_at<uint32_t>(bytes_, at + 16),
                   number_at<uint32_t>(bytes_, at + 20),
                   number_at<uint32_t>(bytes_, at + 24),
                   number_at<uint32_t>(bytes_, at + 42)};
    const uint64_t fields = std::min<uint64_t>(at + kEntrySize + name, bytes_.size());
    read_zip64(bytes_.substr(fields, extra), entry);
    if (entry.header > bytes_.size() || entry.packed > bytes_.size() - entry.header) {
      throw bad_zip(file_name_,
                    "entry " + in_quotes(entry.name) + " reaches beyond the end of the file");
    }
    entries_.push_back(std::move(entry));
    at += kEntrySize + name + extra + comment;
  }
  for (const ZipEntry& entry : entries_) by_name_.emplace(entry.name, &entry);
}

const ZipEntry* ZipReader::find(std::string_view name) const {
  const auto found = by_name_.find(name);
  return found == by_name_.end() ? nullptr : found->second;
}

std::string_view ZipReader::data(const ZipEntry& entry) const {
  const auto fail = [&](const char* why) {
    throw bad_zip(file_name_, "entry " + in_quotes(entry.name) + " " + why);
  };
  if (!is_at(bytes_, entry.header, kLocalMark)) fail("has no local header");
  const uint64_t begin = entry.header + kLocalSize +
                         number_at<uint16_t>(bytes_, entry.header + 26) +
                         number_at<uint16_t>(bytes_, entry.header + 28);
  if (begin > bytes_.size() || entry.packed > bytes_.size() - begin) {
    fail("reaches beyond the end of the file");
  }
  return bytes_.substr(begin, entry.packed);
}

std::string_view ZipReader::content(const ZipEntry& entry) const {
  const auto fail = [&](const std::string& why) {
    throw bad_zip(file_name_, "entry " + in_quotes(entry.name) + " " + why);
  };
  const std::string_view packed = data(entry);
  if (entry.method == kStored) {
    if (entry.size != entry.packed) fail("is stored with two different sizes");
    return packed;
  }
  for (const auto& [known, content] : inflated_) {
    if (known == &entry) return content;
  }
  if (entry.method != kDeflated) {
    fail("is compressed by method " + std::to_string(entry.method) +
         "; expected stored or deflated");
  }
  if (entry.size > kSafeSize && entry.size / kLargestExpansion > entry.packed) {
    fail("would expand to " + std::to_string(entry.size) + " bytes, more than " +
         std::to_string(kLargestExpansion) + " times its size; store it without compression");
  }
  std::string content = inflate_all(packed, entry.size);
  if (content.size() != entry.size || crc_of(content) != entry.crc) fail("is damaged");
  return inflated_.emplace_back(&entry, std::move(content)).second;
}

void ZipWriter::put(std::string_view bytes) {
  constexpr size_t kBuffered = 64 << 10;
  if (buffer_.size() + bytes.size() > kBuffered) flush();
  if (bytes.size() > kBuffered) {
    file_.write(bytes);
  } else {
    buffer_ += bytes;
  }
  at_ += bytes.size();
}

void ZipWriter::flush() {
  file_.write(buffer_);
  buffer_.clear();
}

void ZipWriter::begin(const std::string& name, uint64_t size) {
  open_entry(name, size, 0);
  in_pieces_ = true;
}

void ZipWriter::open_entry(const std::string& name, uint64_t size, uint32_t crc) {
  close_entry();
  const bool is_large = size >= kSentinel32;
  std::string fields;
  if (is_large) {
    append(fields, kZip64Field);
    append(fields, uint16_t{16});
    append(fields, size);
    append(fields, size);
  }
  const size_t unpadded = at_ + kLocalSize + name.size() + fields.size() + 4;
  const auto padding = static_cast<uint16_t>((kAlignment - unpadded % kAlignment) % kAlignment);
  append(fields, kPaddingField);
  append(fields, padding);
  fields.append(padding, 'Z');

  entries_.push_back({name, kStored, crc, size, size, at_});
  const uint32_t short_size = is_large ? kSentinel32 : static_cast<uint32_t>(size);
  std::string header(kLocalMark);
  append(header, is_large ? kVersion64 : uint16_t{0});
  append(header, kUtf8);
  append(header, kStored);
  append(header, uint32_t{0});  // time and date
  append(header, crc);
  append(header, short_size);
  append(header, short_size);
  append(header, static_cast<uint16_t>(name.size()));
  append(header, static_cast<uint16_t>(fields.size()));
  put(header + name + fields);
}

void ZipWriter::write(std::string_view bytes) {
  entries_.back().crc = crc_of(bytes, entries_.back().crc);
  put(bytes);
}

void ZipWriter::add(const std::string& name, std::string_view bytes) {
  open_entry(name, bytes.size(), crc_of(bytes));
  put(bytes);
}

void ZipWriter::close_entry() {
  if (!std::exchange(in_pieces_, false)) return;
  flush();
  std::string crc;
  append(crc, entries_.back().crc);
  const auto at = static_cast<off_t>(entries_.back().header + kCrcAt);
  if (pwrite(file_.descriptor(), crc.data(), crc.size(), at) != static_cast<ssize_t>(crc.size())) {
    throw errors::cannot_write(file_.temporary(), errno);
  }
}

void ZipWriter::finish() {
  close_entry();
  const uint64_t begin = at_;
  for (const ZipEntry& entry : entries_) {
    std::string fields;
    const auto shortened = [&fields](uint64_t value) {
      if (value < kSentinel32) return static_cast<uint32_t>(value);
      append(fields, value);
      return kSentinel32;
    };
    const uint32_t size = shortened(entry.size);
    const uint32_t packed = shortened(entry.packed);
    const uint32_t header = shortened(entry.header);
    std::string record(kEntryMark);
    append(record, kVersion64);
    append(record, fields.empty() ? uint16_t{0} : kVersion64);
    append(record, kUtf8);
    append(record, kStored);
    append(record, uint32_t{0});
    append(record, entry.crc);
    append(record, packed);
    append(record, size);
    append(record, static_cast<uint16_t>(entry.name.size()));
    append(record, static_cast<uint16_t>(fields.empty() ? 0 : fields.size() + 4));
    record.append(10, '\0');  // comment, disk, attributes
    append(record, header);
    record += entry.name;
    if (!fields.empty()) {
      append(record, kZip64Field);
      append(record, static_cast<uint16_t>(fields.size()));
      record += fields;
    }
    put(record);
  }
  const uint64_t size = at_ - begin;
  const uint64_t count = entries_.size();
  const bool is_large = size >= kSentinel32 || begin >= kSentinel32 || count >= kSentinel16;
  std::string end;
  if (is_large) {
    end += kEnd64Mark;
    append(end, uint64_t{kEnd64Size - 12});
    append(end, kVersion64);
    append(end, kVersion64);
    end.append(8, '\0');  // disks
    append(end, count);
    append(end, count);
    append(end, size);
    append(end, begin);
    end += kLocatorMark;
    append(end, uint32_t{0});
    append(end, at_);
    append(end, uint32_t{1});
  }
  const auto short_count = static_cast<uint16_t>(std::min<uint64_t>(count, kSentinel16));
  end += kEndMark;
  append(end, uint32_t{0});
  append(end, short_count);
  append(end, short_count);
  append(end, static_cast<uint32_t>(std::min<uint64_t>(size, kSentinel32)));
  append(end, static_cast<uint32_t>(std::min<uint64_t>(begin, kSentinel32)));
  append(end, uint16_t{0});
  put(end);
  flush();
}

}  // namespace parsimony
