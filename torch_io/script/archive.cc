#include <algorithm>
#include <cstdint>
#include <cstring>

#include "parsimony/torch_io/script/archive_impl.h"

namespace parsimony::torch_io::script {
namespace {

// Of the zip format: the records at the end, and what stands where in them.
constexpr std::string_view kEndRecord = "PK\5\6";
constexpr std::string_view kEnd64Locator = "PK\6\7";
constexpr std::string_view kEnd64 = "PK\6\6";
constexpr std::string_view kEntry = "PK\1\2";
constexpr size_t kEndSize = 22;
constexpr size_t kLocatorSize = 20;
constexpr size_t kEntrySize = 46;

/// A little-endian number; 0 beyond the end.
template <typename T>
T number_at(std::string_view bytes, size_t at) {
  T value = 0;
  if (at <= bytes.size() && bytes.size() - at >= sizeof(T)) {
    std::memcpy(&value, bytes.data() + at, sizeof(T));
  }
  return value;
}

bool stands_at(std::string_view bytes, size_t at, std::string_view mark) {
  return at <= bytes.size() && bytes.substr(at, mark.size()) == mark;
}

bool ends_in(const std::vector<std::string>& entries, std::string_view suffix) {
  return std::any_of(entries.begin(), entries.end(),
                     [&](const std::string& name) { return name.ends_with(suffix); });
}

}  // namespace

std::vector<std::string> entries_of(std::string_view zip) {
  const size_t end = zip.rfind(kEndRecord);
  if (end == std::string_view::npos || zip.size() - end < kEndSize) return {};
  size_t at = number_at<uint32_t>(zip, end + 16);
  if (end >= kLocatorSize && stands_at(zip, end - kLocatorSize, kEnd64Locator)) {
    const size_t end64 = number_at<uint64_t>(zip, end - kLocatorSize + 8);
    if (!stands_at(zip, end64, kEnd64)) return {};
    at = number_at<uint64_t>(zip, end64 + 48);
  }
  std::vector<std::string> names;
  while (stands_at(zip, at, kEntry) && zip.size() - at >= kEntrySize) {
    const size_t name = number_at<uint16_t>(zip, at + 28);
    const size_t more = number_at<uint16_t>(zip, at + 30) + number_at<uint16_t>(zip, at + 32);
    names.emplace_back(zip.substr(at + kEntrySize, name));
    at += kEntrySize + name + more;
  }
  return names;
}

std::string not_torchscript_because(std::string_view bytes) {
  if (bytes.empty()) return "it is empty";
  if (bytes.starts_with("\x80")) {
    return "it is a pickle, as torch.save wrote before version 1.6; export with torch.jit.save";
  }
  if (!bytes.starts_with("PK")) return "it is not a zip archive";
  const std::vector<std::string> entries = entries_of(bytes);
  if (entries.empty()) return "the archive is truncated";
  if (ends_in(entries, "/constants.pkl")) return "";
  if (ends_in(entries, "/data.pkl")) {
    return "it holds tensors without a program (torch.save of a state dict or a model); export " +
           std::string("with torch.jit.trace or torch.jit.script and torch.jit.save");
  }
  return "the zip archive holds no program";
}

std::vector<std::string> extra_files(std::string_view zip) {
  constexpr std::string_view kFolder = "/extra/";
  std::vector<std::string> names;
  for (const std::string& entry : entries_of(zip)) {
    const size_t slash = entry.find('/');
    if (slash == std::string::npos || entry.compare(slash, kFolder.size(), kFolder) != 0) continue;
    names.push_back(entry.substr(slash + kFolder.size()));
  }
  return names;
}

}  // namespace parsimony::torch_io::script
