#include "parsimony/base/files.h"

#include <fcntl.h>
#include <openssl/evp.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <set>
#include <string>
#include <system_error>
#include <utility>

#include "parsimony/base/errors.h"

namespace parsimony {
namespace {

constexpr int kMaxTries = 100;  // skips names left behind by crashed processes

class Descriptor {
 public:
  explicit Descriptor(int descriptor) : descriptor_(descriptor) {}
  ~Descriptor() {
    if (descriptor_ >= 0) close(descriptor_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return descriptor_; }

 private:
  int descriptor_;
};

/// Returns the status of an open file. @throws IoError
struct stat status_of(const Descriptor& file, const std::string& path) {
  struct stat status {};
  if (file.get() < 0 || fstat(file.get(), &status) != 0) throw errors::cannot_read(path, errno);
  if (S_ISDIR(status.st_mode)) throw errors::cannot_read(path, EISDIR);
  return status;
}

/// @throws IoError
std::string content_of(const Descriptor& file, const struct stat& status, const std::string& path) {
  std::string content(status.st_size, '\0');
  size_t filled = 0;
  for (;;) {
    if (filled == content.size()) content.resize(content.size() + 4096);  // pipes have no size
    const ssize_t got = read(file.get(), content.data() + filled, content.size() - filled);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw errors::cannot_read(path, errno);
    if (got == 0) break;
    filled += got;
  }
  content.resize(filled);
  return content;
}

}  // namespace

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

bool is_zip(const std::string& path) {
  const Descriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  std::array<char, 4> magic{};
  return file.get() >= 0 && read(file.get(), magic.data(), magic.size()) == ssize_t{magic.size()} &&
         std::string_view(magic.data(), magic.size()) == "PK\x03\x04";
}

int64_t size_of_file(const std::string& path) {
  std::error_code error;
  const auto bytes = std::filesystem::file_size(path, error);
  return error ? 0 : static_cast<int64_t>(bytes);
}

std::string read_file(const std::string& path) {
  const Descriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  return content_of(file, status_of(file, path), path);
}

MappedFile::MappedFile(const std::string& path) {
  const Descriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  const struct stat status = status_of(file, path);
  const size_t size = status.st_size;
  void* const data = S_ISREG(status.st_mode) && size > 0
                         ? mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.get(), 0)
                         : MAP_FAILED;
  if (data == MAP_FAILED) {
    content_ = content_of(file, status, path);
    bytes_ = content_;
    return;
  }
  madvise(data, size, MADV_SEQUENTIAL);
  bytes_ = {static_cast<const char*>(data), size};
}

MappedFile::~MappedFile() {
  if (bytes_.data() != content_.data()) munmap(const_cast<char*>(bytes_.data()), bytes_.size());
}

bool MappedFile::holds(std::string_view part) const {
  return std::less_equal<>()(bytes_.data(), part.data()) &&
         std::less_equal<>()(part.data() + part.size(), bytes_.data() + bytes_.size());
}

void MappedFile::release(std::string_view part) const {
  constexpr size_t kFewest = 64 << 10;  // of fewer the call takes longer than it is worth
  if (bytes_.data() == content_.data() || part.size() < kFewest || !holds(part)) return;
  const size_t page = sysconf(_SC_PAGESIZE);
  const size_t begin = (part.data() - bytes_.data()) / page * page;
  const size_t end = part.data() + part.size() - bytes_.data();
  madvise(const_cast<char*>(bytes_.data()) + begin, end - begin, MADV_DONTNEED);
}

namespace {

/// The temporary folders of the process.
class TemporaryFolders {
 public:
  void add(const std::filesystem::path& folder) {
    const std::lock_guard lock(mutex_);
    folders_.insert(folder);
  }
  void remove(const std::filesystem::path& folder) {
    const std::lock_guard lock(mutex_);
    folders_.erase(folder);
  }
  bool hold(const std::filesystem::path& file) const {
    const std::lock_guard lock(mutex_);
    return folders_.contains(file.parent_path());
  }

 private:
  mutable std::mutex mutex_;
  std::set<std::filesystem::path> folders_;
};

TemporaryFolders& temporary_folders() {
  static TemporaryFolders folders;
  return folders;
}

/// The file that a link leads to.
std::string target_of(std::string path) {
  std::error_code ignored;
  if (!std::filesystem::is_symlink(path, ignored)) return path;
  const std::filesystem::path target = std::filesystem::canonical(path, ignored);
  return ignored ? path : target.string();
}

}  // namespace

NewFile::NewFile(std::string path) : path_(target_of(std::move(path))) {
  std::error_code ignored;
  const std::filesystem::file_status status = std::filesystem::status(path_, ignored);
  // A rename would replace a device by a file.
  if (exists(status) && !is_regular_file(status)) {
    throw IoError(path_, ": cannot be written: it exists and is not a regular file");
  }
  for (int i = 0; i < kMaxTries; ++i) {
    temporary_ = path_ + ".tmp" + std::to_string(getpid()) + "-" + std::to_string(i);
    descriptor_ = open(temporary_.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (descriptor_ >= 0) return;
    if (errno != EEXIST) break;
  }
  throw errors::cannot_write(path_, errno);
}

NewFile::~NewFile() {
  if (descriptor_ < 0) return;
  close(descriptor_);
  unlink(temporary_.c_str());
}

void NewFile::write(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(descriptor_, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) throw errors::cannot_write(path_, errno);
    bytes.remove_prefix(written);
  }
}

void NewFile::commit(bool lasting) {
  std::error_code ignored;
  lasting = lasting || std::filesystem::exists(path_, ignored);
  const bool written = !lasting || temporary_folders().hold(path_) || fsync(descriptor_) == 0;
  const bool closed = close(std::exchange(descriptor_, -1)) == 0;  // which reports late errors
  if (written && closed && rename(temporary_.c_str(), path_.c_str()) == 0) return;
  const int cause = errno;
  unlink(temporary_.c_str());
  throw errors::cannot_write(path_, cause);
}

void write_file(const std::string& path, std::string_view bytes) {
  NewFile file(path);
  file.write(bytes);
  file.commit();
}

std::filesystem::path cache_folder() {
  namespace fs = std::filesystem;
  if (const std::string own = environment("PARSIMONY_CACHE"); !own.empty()) return own;
  const std::string shared = environment("XDG_CACHE_HOME");
  return (shared.empty() ? fs::path(environment("HOME")) / ".cache" : fs::path(shared)) /
         "parsimony";
}

namespace {

namespace fs = std::filesystem;

fs::path unused() {
  std::string name = (fs::temp_directory_path() / "parsimony-XXXXXX").string();
  if (mkdtemp(name.data()) == nullptr) throw errors::cannot_write(name, errno);
  return name;
}

/// Empties the folder, in which a process that was killed may have left files.
fs::path emptied(const fs::path& path) {
  std::error_code error;
  fs::remove_all(path, error);
  fs::create_directory(path, error);
  if (error) throw errors::cannot_write(path.string(), error.value());
  return path;
}

}  // namespace

TemporaryFolder::TemporaryFolder(const std::string& path)
    : path_(path.empty() ? unused() : emptied(path)) {
  temporary_folders().add(path_);
}

TemporaryFolder::~TemporaryFolder() {
  temporary_folders().remove(path_);
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

int64_t TemporaryFolder::bytes() const {
  int64_t sum = 0;
  for (const fs::directory_entry& file : fs::directory_iterator(path_)) {
    sum += static_cast<int64_t>(file.file_size());
  }
  return sum;
}

std::string picture_uri(std::string_view bytes) {
  const bool png = bytes.starts_with("\x89PNG\r\n\x1a\n");
  if (!png && !bytes.starts_with("\xff\xd8\xff")) return "";
  std::string uri = png ? "data:image/png;base64," : "data:image/jpeg;base64,";
  const size_t head = uri.size();
  uri.resize(head + (bytes.size() + 2) / 3 * 4 + 1);  // and the zero that libcrypto ends it with
  EVP_EncodeBlock(reinterpret_cast<unsigned char*>(uri.data() + head),
                  reinterpret_cast<const unsigned char*>(bytes.data()),
                  static_cast<int>(bytes.size()));
  uri.pop_back();
  return uri;
}

}  // namespace parsimony
