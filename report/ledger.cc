#include "parsimony/report/ledger.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <map>
#include <string_view>

#include "parsimony/base/errors.h"
#include "parsimony/base/files.h"
#include "parsimony/base/json_reader.h"

namespace parsimony {
namespace {

namespace fs = std::filesystem;

constexpr const char* kFileName = "ledger.jsonl";

/// Points with the places where they were found.
class Collector {
 public:
  void add(LedgerPoint point, const std::string& place) {
    const auto [known, is_new] = places_.try_emplace(point.key, Known{points_.size(), place});
    if (is_new) {
      points_.push_back(std::move(point));
      return;
    }
    if (!points_[known->second.index].agrees_with(point)) {
      throw ModelError(known->second.place, " and ", place,
                       " tell the same point differently (key ", point.key,
                       "); remove the line that is wrong");
    }
  }
  std::vector<LedgerPoint> take() { return std::move(points_); }

 private:
  struct Known {
    size_t index;
    std::string place;
  };
  std::vector<LedgerPoint> points_;
  std::map<std::string, Known> places_;
};

/// Where the last line begins if it has no newline; the end otherwise.
size_t tail_begin(std::string_view bytes) {
  const size_t newline = bytes.rfind('\n');
  return newline == std::string_view::npos ? 0 : newline + 1;
}

/// No beginning of an object is an object, so what parses is whole: an editor took its newline.
bool is_whole(std::string_view line) { return is_json(line); }

/// Returns whether an unfinished line was passed over.
bool collect(std::string_view bytes, const std::string& path, Collector& collector) {
  size_t number = 0;
  for (size_t begin = 0; begin < bytes.size();) {
    ++number;
    const size_t end = bytes.find('\n', begin);
    const std::string_view line = bytes.substr(begin, end - begin);
    if (end == std::string_view::npos && !is_whole(line)) return true;
    const std::string place = path + ":" + std::to_string(number);
    if (!line.empty()) collector.add(read_ledger_point(line, place), place);
    if (end == std::string_view::npos) break;
    begin = end + 1;
  }
  return false;
}

void collect_file(const std::string& path, Collector& collector, LedgerContent& content) {
  if (collect(read_file(path), path, collector)) {
    content.notes.push_back(path + ": the last line is unfinished and was skipped");
  }
}

/// An open file under an exclusive lock; both end with the object, or with the process.
class LockedFile {
 public:
  explicit LockedFile(const std::string& path)
      : path_(path),
        is_new_(!fs::exists(path)),
        descriptor_(open(path.c_str(), O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC, 0666)) {
    if (descriptor_ < 0) throw errors::cannot_write(path, errno);
    while (flock(descriptor_, LOCK_EX) != 0) {
      if (errno == EINTR) continue;
      const int cause = errno;
      close(descriptor_);
      throw errors::cannot_write(path, cause);
    }
    if (is_new_) sync_folder();
  }
  ~LockedFile() { close(descriptor_); }
  LockedFile(const LockedFile&) = delete;
  LockedFile& operator=(const LockedFile&) = delete;

  void cut(size_t size) const {
    if (ftruncate(descriptor_, static_cast<off_t>(size)) != 0) fail(errno);
  }

  /// All of it or nothing: `size` is the file's own, to which a failure takes it back.
  void append(std::string_view bytes, size_t size) const {
    if (put(bytes)) return;
    const int cause = errno;
    cut(size);
    fail(cause);
  }

 private:
  /// False with errno set.
  bool put(std::string_view bytes) const {
    while (!bytes.empty()) {
      const ssize_t written = write(descriptor_, bytes.data(), bytes.size());
      if (written < 0 && errno == EINTR) continue;
      if (written < 0) return false;
      bytes.remove_prefix(written);
    }
    return fsync(descriptor_) == 0;
  }

  [[noreturn]] void fail(int cause) const { throw errors::cannot_write(path_, cause); }

  /// So that the new name survives a crash as well.
  void sync_folder() const {
    const std::string folder = fs::path(path_).parent_path().string();
    const int opened = open(folder.empty() ? "." : folder.c_str(), O_RDONLY | O_CLOEXEC);
    if (opened < 0) return;
    fsync(opened);
    close(opened);
  }

  const std::string& path_;
  bool is_new_;
  int descriptor_;
};

}  // namespace

Ledger::Ledger(const std::string& folder) : path_((fs::path(folder) / kFileName).string()) {}

bool Ledger::append(const LedgerPoint& point) {
  std::string line = to_json_line(point) + "\n";
  const LockedFile file(path_);
  const std::string bytes = read_file(path_);
  Collector known;
  collect(bytes, path_, known);
  for (const LedgerPoint& other : known.take()) {
    if (other.key == point.key) return false;
  }
  size_t size = bytes.size();
  const size_t tail = tail_begin(bytes);
  const std::string_view last(bytes.data() + tail, size - tail);
  if (!last.empty() && is_whole(last)) {
    line.insert(0, "\n");
  } else if (!last.empty()) {
    file.cut(tail);
    size = tail;
  }
  file.append(line, size);
  return true;
}

LedgerContent Ledger::content() const {
  return fs::exists(path_) ? read_ledger(path_) : LedgerContent{};
}

std::set<std::string> Ledger::keys() const {
  std::set<std::string> keys;
  for (const LedgerPoint& point : points()) keys.insert(point.key);
  return keys;
}

LedgerContent read_ledger(const std::string& path) {
  LedgerContent content;
  Collector collector;
  collect_file(path, collector, content);
  content.points = collector.take();
  return content;
}

LedgerContent merge_ledgers(std::span<const std::string> folders) {
  LedgerContent content;
  Collector collector;
  for (const std::string& folder : folders) {
    const bool is_folder = fs::is_directory(folder);
    const std::string path = is_folder ? (fs::path(folder) / kFileName).string() : folder;
    if (is_folder && !fs::exists(path)) {
      throw IoError(folder,
                    ": has no ledger.jsonl; give the folder that `parsimony sweep --out` names");
    }
    collect_file(path, collector, content);
  }
  content.points = collector.take();
  return content;
}

}  // namespace parsimony
